"""The daemons of new nodes."""

import msgspec

from tests.support import builders
from tests.support.builders import node
from tutti.kube.objects import DaemonSet
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.market.node_daemons import daemon_pods_for, daemon_sets_of


def daemon_pod(daemon, on, kind="DaemonSet"):
    """The pod of a daemon set, or of a node itself, that may run on one node only."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    where = {"on": on, "affinity": {"nodeAffinity": required}}
    return builders.pod(f"{daemon}-{on}", "100m", namespace="kube-system", owner=(kind, daemon), **where)


def snapshot(*objects):
    return Snapshot(objects=by_kind(objects), present_kinds=frozenset(each.KIND for each in objects))


def names(found, new):
    return [pod.metadata.owner_references[0].name for pod in daemon_pods_for(daemon_sets_of(found), new)]


GPU = {"node.kubernetes.io/instance-type": "g4dn.xlarge"}
CPU = {"node.kubernetes.io/instance-type": "m5.large"}


def test_a_daemon_set_runs_on_the_new_nodes_that_it_selects():
    template = {
        "spec": {
            "containers": [{"name": "c"}],
            "nodeSelector": {"gpu": "yes"},
            "priorityClassName": "system-node-critical",
        }
    }
    made = msgspec.convert({"metadata": {"name": "d", "namespace": "x"}, "spec": {"template": template}}, DaemonSet)
    found = snapshot(made)
    assert names(found, node("new", labels={"gpu": "yes"})) == ["d"]
    assert names(found, node("new")) == []
    (pod,) = daemon_pods_for(daemon_sets_of(found), node("new", labels={"gpu": "yes"}))
    assert pod.spec.node_name == "new"
    assert pod.spec.priority == 2_000_001_000


def test_pods_without_their_daemon_set_stand_for_it():
    everywhere = [daemon_pod("proxy", "n1"), daemon_pod("proxy", "n2")]
    found = snapshot(node("n1", labels=GPU), node("n2", labels=CPU), *everywhere)
    assert names(found, node("new", labels={"node.kubernetes.io/instance-type": "other"})) == ["proxy"]


def test_a_daemon_on_some_nodes_runs_on_new_ones_like_those():
    found = snapshot(node("n1", labels=GPU), node("n2", labels=CPU), daemon_pod("gpu-plugin", "n1"))
    assert names(found, node("new", labels=GPU)) == ["gpu-plugin"]
    assert names(found, node("new", labels=CPU)) == []


def test_a_daemon_kept_off_by_a_taint_needs_no_label():
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    found = snapshot(node("n1", labels=CPU), node("n2", labels=CPU, taints=[taint]), daemon_pod("agent", "n1"))
    assert names(found, node("new", labels=GPU)) == ["agent"]
    assert names(found, node("new", labels=CPU, taints=[taint])) == []


def test_static_pods_are_on_every_new_node():
    found = snapshot(node("n1", labels=CPU), daemon_pod("kube-proxy", "n1", kind="Node"))
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    (pod,) = daemon_pods_for(daemon_sets_of(found), node("new", labels=CPU, taints=[taint]))
    assert pod.metadata.name.startswith("kube-proxy-")


def test_the_object_comes_before_its_pods_and_control_planes_tell_nothing():
    template = {"spec": {"containers": [{"name": "c"}]}}
    made = msgspec.convert(
        {"metadata": {"name": "d", "namespace": "kube-system"}, "spec": {"template": template}}, DaemonSet
    )
    master = node("m", labels={"node-role.kubernetes.io/control-plane": ""})
    found = snapshot(made, master, node("n1"), daemon_pod("d", "n1"), daemon_pod("etcd", "m", kind="Node"))
    assert [each.metadata.name for each in daemon_sets_of(found)] == ["d"]
