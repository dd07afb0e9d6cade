"""VolumeBinding: each set of refusals has its own status code."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.support.builders import node, pod
from tutti.cluster.cluster import Cluster
from tutti.engine.placement.engine import Engine
from tutti.engine.plugins.base import PreFilterState
from tutti.engine.plugins.verdict import PASS, decode, encode
from tutti.engine.plugins.volume_binding import VolumeBinding
from tutti.kube import objects as k

ELSEWHERE = {
    "metadata": {"name": "elsewhere"},
    "spec": {
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["other"]}]}]
            }
        }
    },
}
REACHED = {"metadata": {"name": "reached"}}
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NOT_EXIST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"


def claims(volume: str, storage_class: str) -> list[k.Object]:
    bound = {
        "metadata": {"name": "bound", "namespace": "default", "annotations": BOUND},
        "spec": {"volumeName": volume, "storageClassName": "any"},
    }
    waiting = {
        "metadata": {"name": "waiting", "namespace": "default"},
        "spec": {"storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}},
    }
    return [msgspec.convert(each, k.PersistentVolumeClaim) for each in (bound, waiting)]


def storage_class(name: str, provisioner: str) -> k.StorageClass:
    meta = k.ObjectMeta(name=name)
    return k.StorageClass(metadata=meta, provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer")


@pytest.mark.parametrize(
    ("volume", "bound"), [("reached", ()), ("elsewhere", (NODE_CONFLICT,)), ("none", (NOT_EXIST,))]
)
@pytest.mark.parametrize(
    ("storage", "waiting"), [("unlimited", ()), ("static", (BIND_CONFLICT,)), ("full", (NO_SPACE,))]
)
def test_code_of_a_refused_node_has_its_messages(
    volume: str, bound: tuple[str, ...], storage: str, waiting: tuple[str, ...]
) -> None:
    mounts = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("bound", "waiting")]
    cluster = Cluster(
        [
            node("a"),
            *(msgspec.convert(each, k.PersistentVolume) for each in (ELSEWHERE, REACHED)),
            storage_class("unlimited", "disk.example"),
            storage_class("static", "kubernetes.io/no-provisioner"),
            storage_class("full", "full.example"),
            msgspec.convert({"metadata": {"name": "full.example"}, "spec": {"storageCapacity": True}}, k.CSIDriver),
            *claims(volume, storage),
            pod("p", volumes=mounts),
        ]
    )
    plugin, incoming = VolumeBinding(), Engine(cluster).evaluator.incoming_pod(cluster.pod_row("default/p"))
    state = plugin.pre_filter(incoming)
    assert isinstance(state, PreFilterState)
    (code,) = state.filter(slice(0, 1)).tolist()
    messages = plugin.reason(incoming, 0, code).messages
    assert set(messages) == {*bound, *waiting}
    assert (plugin.refusals[code - 1].message if code else "") == " and ".join(messages)
    assert decode(int(encode(1, np.array([code], dtype=np.uint8))[0])) == ((1, code) if code else decode(PASS))
