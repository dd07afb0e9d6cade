"""NodeDeclaredFeatures: which features a pod needs, and which nodes take it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.builders import node, pod
from tests.support.scheduler_configs import config, load, profile
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put
from tutti.engine.placement.engine import Engine
from tutti.engine.reasons.pod_failure import fit_error
from tutti.engine.session.policy import SECOND, Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube import objects as k
from tutti.kube.node_features import required_features

RESTART_ALL = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
MOUNT_OPTIONS = {"volumeMounts": [{"name": "data", "mountPath": "/data", "bindMountOptions": ["noexec"]}]}
OWN_USERS = {"hostNetwork": True, "hostUsers": False}
REFUSED = "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
NO_RETRY = Policy(patience=Patience(first_backoff=0, longest_backoff=0, retry_after=10**15))


def declares(name: str, *features: str) -> k.Node:
    plain = node(name)
    return replace(plain, status=replace(plain.status, declared_features=list(features) or None))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ()),
        ({"hostNetwork": True}, ()),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"hostUsers": False}, ()),
        (OWN_USERS, ("UserNamespacesHostNetworkSupport",)),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, ()),
        ({"containers": [{}, RESTART_ALL]}, ("RestartAllContainersOnContainerExits",)),
        ({"initContainers": [RESTART_ALL]}, ("RestartAllContainersOnContainerExits",)),
        ({"containers": [{"volumeMounts": [{"name": "data"}, {"bindMountOptions": []}]}]}, ()),
        ({"containers": [MOUNT_OPTIONS]}, ("VolumeBindMountOptions",)),
        ({"initContainers": [MOUNT_OPTIONS]}, ("VolumeBindMountOptions",)),
        (
            {**OWN_USERS, "containers": [{**MOUNT_OPTIONS, **RESTART_ALL}]},
            ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"),
        ),
    ],
)
def test_what_a_pod_needs(spec: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert required_features(msgspec.convert(spec, k.PodSpec)) == expected


def test_only_nodes_that_declare_all_features_take_the_pod() -> None:
    both = pod("both", containers=[MOUNT_OPTIONS], **OWN_USERS)
    nodes = (
        declares("a"),
        declares("b", "UserNamespacesHostNetworkSupport"),
        declares("c", "Other", "VolumeBindMountOptions", "UserNamespacesHostNetworkSupport"),
    )
    cluster = Cluster([*nodes, both, pod("one", **OWN_USERS), pod("plain")])
    engine = Engine(cluster)
    assert engine.decide("default/plain").node == "a"
    assert engine.decide("default/one").node == "b"
    assert engine.decide("default/both").node == "c"


def test_the_message_is_kube_schedulers_and_evictions_do_not_help() -> None:
    engine = Engine(Cluster([declares("a", "Other"), pod("p", **OWN_USERS)]))
    attempt = engine.attempt("default/p")
    assert fit_error(attempt.decision) == REFUSED
    assert attempt.decision.plugins == {"NodeDeclaredFeatures"}
    assert attempt.filtered is not None
    assert attempt.refusals is not None
    assert not engine.evaluator.resolvable_rows(attempt.incoming, attempt.filtered, attempt.refusals).any()


def test_a_profile_can_turn_the_plugin_off() -> None:
    off = ([], ["NodeDeclaredFeatures"])
    cluster = Cluster([node("a"), pod("p", **OWN_USERS)])
    assert Engine(cluster, load(config(profile(preFilter=off, filter=off)))).decide("default/p").node == "a"
    assert Engine(cluster, load(config(profile()))).decide("default/p").node is None


def test_a_waiting_pod_is_tried_again_when_a_node_declares_the_feature() -> None:
    cluster = Cluster([declares("a"), pod("p", **OWN_USERS)])
    engine, queue = Engine(cluster), Queue(cluster)
    (waiting,) = session(engine, queue, SECOND, NO_RETRY).unschedulable
    assert waiting.message.startswith(REFUSED)
    cluster.apply(Put(declares("a", "Other")))
    assert not session(engine, queue, 2 * SECOND, NO_RETRY).binds
    mark = cluster.mark()
    cluster.apply(Put(declares("a", "UserNamespacesHostNetworkSupport")))
    cluster.rollback(mark)
    assert not session(engine, queue, 3 * SECOND, NO_RETRY).binds
    cluster.apply(Put(declares("a", "UserNamespacesHostNetworkSupport")))
    (bind,) = session(engine, queue, 4 * SECOND, NO_RETRY).binds
    assert bind.node == "a"
