"""Which pods may be victims at all."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.builders import node, pod
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.preemption.victim_rules import SparingRules, VictimRules
from tutti.engine.session.policy import OFFLINE, Policy
from tutti.engine.session.session import session
from tutti.kube import objects as k

MIRROR = {"kubernetes.io/config.mirror": "hash"}


def owned(obj: k.Pod, kind: str) -> k.Pod:
    """Let a controller of a kind own a pod."""
    owner = k.OwnerReference(kind=kind, name="owner", uid="1", controller=True)
    return replace(obj, metadata=replace(obj.metadata, owner_references=[owner]))


def victims() -> dict[str, k.Pod]:
    """Return one pod of each sort on a node of its own."""
    return {
        "mirror": pod("mirror", on="mirror", cpu="4", annotations=MIRROR),
        "daemon": owned(pod("daemon", on="daemon", cpu="4"), "DaemonSet"),
        "other": pod("other", on="other", cpu="4", schedulerName="other"),
        "own": owned(pod("own", on="own", cpu="4"), "ReplicaSet"),
    }


def allowed(cluster: Cluster, rules: VictimRules) -> set[str]:
    """Return the names of the pods that may be evicted."""
    rows = np.array(sorted(cluster.pods.row_of.values()), dtype=np.intp)
    chosen = rows[rules.may_evict(cluster, rows, "default-scheduler")]
    return {cluster.pods.keys[row].partition("/")[2] for row in chosen.tolist()}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (VictimRules(), {"mirror", "daemon", "other", "own"}),
        (VictimRules(mirror_pods=False), {"daemon", "other", "own"}),
        (VictimRules(daemons=False), {"mirror", "other", "own"}),
        (VictimRules(other_schedulers=False), {"mirror", "daemon", "own"}),
        (VictimRules(mirror_pods=False, daemons=False, other_schedulers=False), {"own"}),
    ],
)
def test_rules(rules: VictimRules, expected: set[str]) -> None:
    cluster = Cluster((*(node(name, cpu="4") for name in victims()), *victims().values()))
    assert allowed(cluster, rules) == expected


def test_the_rules_follow_changes() -> None:
    rules = VictimRules(daemons=False)
    cluster = Cluster((node("own", cpu="4"), victims()["own"]))
    assert allowed(cluster, rules) == {"own"}
    cluster.observe(Remove("Pod", "default/own"))
    cluster.observe(Put(owned(pod("own", on="own", cpu="4", uid="2"), "DaemonSet")))
    assert allowed(cluster, rules) == set()


@pytest.mark.parametrize("is_gang", [False, True])
def test_preemption_evicts_only_what_the_rules_allow(is_gang: bool) -> None:
    group = {"pod-group": "high", "tutti.dev/min-member": "1"} if is_gang else {}
    high = pod("high", priority=10, cpu="4", annotations=group)
    cluster = Cluster((*(node(name, cpu="4") for name in victims()), *victims().values(), high))
    rules = VictimRules(mirror_pods=False, daemons=False, other_schedulers=False)
    policy = replace(OFFLINE, victims_allowed=rules)
    plan = session(Engine(cluster), None, None, policy)
    assert [each.pod for each in plan.evictions] == ["default/own"]


def test_policies_have_no_rules_by_default() -> None:
    assert Policy().victims_allowed == VictimRules()


def test_spared_pods_are_known_by_their_uids() -> None:
    cluster = Cluster((*(node(name, cpu="4") for name in victims()), *victims().values()))
    rules = SparingRules(spared=frozenset({("default/own", "own"), ("default/other", "another"), ("default/x", "x")}))
    assert allowed(cluster, rules) == {"mirror", "daemon", "other"}
