"""Defaults and admission; the expected values were checked against an API server's code."""

from functools import partial

import msgspec
import pytest

from tests.support.builders import new_pod
from tutti.exceptions import InputError
from tutti.kube.admission.defaults import with_defaults
from tutti.kube.admission.pod_admission import Admission, is_stored
from tutti.kube.objects import (
    LimitRange,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    RuntimeClass,
    StorageClass,
)
from tutti.kube.resources import host_ports, incoming_requests


def admitted(new, **classes):
    """Admit a new pod to a cluster with these classes and limit ranges."""
    return Admission(**classes).admit_pod(new)


def make(kind, **fields):
    fields.setdefault("metadata", {"name": "x"})
    return msgspec.convert(fields, kind)


pod = partial(new_pod, namespace="default")


def with_limits(limits, requests=None):
    resources = {"limits": limits} | ({"requests": requests} if requests else {})
    return [{"name": "c", "resources": resources}]


def test_requests_come_from_limits():
    new = admitted(pod(containers=with_limits({"cpu": "2", "memory": "1Gi"}, {"cpu": "1"})))
    assert incoming_requests(new) == {"cpu": 1000, "memory": 2**30}


def test_pod_level_requests_are_completed_from_containers_and_limits():
    resources = {"limits": {"cpu": "8", "memory": "8Gi"}}
    new = admitted(pod(containers=with_limits({"cpu": "2", "hugepages-2Mi": "4Mi"}), resources=resources))
    assert incoming_requests(new) == {"cpu": 2000, "memory": 8 * 2**30, "hugepages-2Mi": 4 * 2**20}
    assert new.spec.resources is not None
    assert sorted(new.spec.resources.requests or ()) == ["cpu", "hugepages-2Mi", "memory"]


def test_host_network_turns_ports_into_host_ports():
    ports = [{"containerPort": 80}, {"containerPort": 90, "hostPort": 9090}]
    new = admitted(pod(hostNetwork=True, containers=[{"name": "c", "ports": ports}]))
    assert [port for _, _, port in host_ports(new)] == [80, 9090]


def test_default_tolerations_are_added_unless_the_pod_has_them():
    keys = [t.key for t in admitted(pod()).spec.tolerations or ()]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    own = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 5}]
    assert [t.toleration_seconds for t in admitted(pod(tolerations=own)).spec.tolerations or ()] == [5, 300]
    assert len(admitted(pod(tolerations=[{"operator": "Exists"}])).spec.tolerations or ()) == 1


HIGH = make(PriorityClass, metadata={"name": "high"}, value=1000, preemptionPolicy="Never")
USUAL = make(PriorityClass, metadata={"name": "usual"}, value=10, globalDefault=True)
LESS = make(PriorityClass, metadata={"name": "less"}, value=5, globalDefault=True)


@pytest.mark.parametrize(
    ("spec", "classes", "priority", "policy"),
    [
        ({}, [], 0, "PreemptLowerPriority"),
        ({"priorityClassName": "high"}, [HIGH, USUAL], 1000, "Never"),
        ({}, [HIGH, USUAL, LESS], 5, "PreemptLowerPriority"),
        ({"priorityClassName": "system-node-critical"}, [], 2_000_001_000, "PreemptLowerPriority"),
        ({"priorityClassName": "system-cluster-critical"}, None, 2_000_000_000, "PreemptLowerPriority"),
        ({"priority": 7}, [USUAL], 7, "PreemptLowerPriority"),
        ({"priorityClassName": "unknown", "priority": 7}, None, 7, "PreemptLowerPriority"),
    ],
)
def test_priority(spec, classes, priority, policy):
    new = admitted(pod(**spec), priority_classes=classes)
    assert (new.spec.priority, new.spec.preemption_policy) == (priority, policy)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"priorityClassName": "unknown"}, "spec.priorityClassName"),
        ({"priorityClassName": "high", "priority": 3}, "spec.priority"),
        ({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}, "spec.preemptionPolicy"),
        ({"runtimeClassName": "unknown"}, "spec.runtimeClassName"),
    ],
)
def test_pods_that_an_api_server_refuses_are_refused(spec, field):
    with pytest.raises(InputError) as raised:
        admitted(pod(**spec), priority_classes=[HIGH], runtime_classes=[])
    assert (raised.value.obj, raised.value.field) == ("pod default/p", field)


def test_a_runtime_class_adds_overhead_node_selector_and_tolerations():
    gvisor = make(
        RuntimeClass,
        metadata={"name": "gvisor"},
        overhead={"podFixed": {"cpu": "250m"}},
        scheduling={"nodeSelector": {"runtime": "gvisor"}, "tolerations": [{"key": "sandbox", "operator": "Exists"}]},
    )
    new = admitted(pod(runtimeClassName="gvisor", nodeSelector={"disk": "ssd"}), runtime_classes=[gvisor])
    assert incoming_requests(new) == {"cpu": 250}
    assert new.spec.node_selector == {"disk": "ssd", "runtime": "gvisor"}
    assert "sandbox" in [t.key for t in new.spec.tolerations or ()]
    with pytest.raises(InputError, match="contradicts"):
        admitted(pod(runtimeClassName="gvisor", nodeSelector={"runtime": "runc"}), runtime_classes=[gvisor])


def test_limit_ranges_set_the_requests_that_containers_omit():
    item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m"}, "max": {"memory": "1Gi"}}
    limits = make(LimitRange, metadata={"name": "l", "namespace": "default"}, spec={"limits": [item]})
    assert incoming_requests(admitted(pod(), limit_ranges=[limits])) == {"cpu": 500, "memory": 2**30}
    named = admitted(pod(containers=with_limits({"cpu": "1"})), limit_ranges=[limits])
    assert incoming_requests(named)["cpu"] == 1000


TERM = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "matchLabelKeys": ["version", "absent"],
    "mismatchLabelKeys": ["tenant"],
}


def test_label_keys_are_merged_into_selectors_once():
    spread = {k: v for k, v in TERM.items() if k != "mismatchLabelKeys"} | {
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
    }
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]
        },
    }
    new = admitted(pod(labels={"version": "2", "tenant": "a"}, affinity=affinity, topologySpreadConstraints=[spread]))
    (term,) = new.spec.affinity.pod_affinity.required
    merged = [(e.key, e.operator, e.values) for e in term.label_selector.match_expressions]
    assert merged == [("version", "In", ["2"]), ("tenant", "NotIn", ["a"])]
    (constraint,) = new.spec.topology_spread_constraints
    assert [e.key for e in constraint.label_selector.match_expressions] == ["version"]
    assert admitted(new) == new


def test_a_missing_selector_stays_missing():
    term = {k: v for k, v in TERM.items() if k != "labelSelector"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    new = admitted(pod(labels={"version": "2"}, affinity=affinity))
    assert new.spec.affinity.pod_affinity.required[0].label_selector is None


@pytest.mark.parametrize(
    ("kind", "fields", "path", "expected"),
    [
        (Node, {"status": {"capacity": {"cpu": "1"}}}, "status.allocatable", {"cpu": "1"}),
        (Namespace, {}, "metadata.labels", {"kubernetes.io/metadata.name": "x"}),
        (StorageClass, {}, "volume_binding_mode", "Immediate"),
        (PersistentVolumeClaim, {}, "spec.volume_mode", "Filesystem"),
        (PersistentVolumeClaim, {}, "status.phase", "Pending"),
        (PersistentVolume, {}, "spec.volume_mode", "Filesystem"),
    ],
)
def test_defaults_of_other_kinds(kind, fields, path, expected):
    defaulted = with_defaults(make(kind, **fields))
    value = defaulted
    for step in path.split("."):
        value = getattr(value, step)
    assert value == expected
    assert with_defaults(defaulted) is defaulted


def test_a_new_claim_gets_the_newest_default_class():
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        make(
            StorageClass,
            metadata={"name": name, "annotations": annotations, "creationTimestamp": f"20{year}-01-01T00:00:00Z"},
        )
        for name, year in (("old", 20), ("new", 24))
    ]
    admission = Admission(storage_classes=classes)
    assert admission.admit_claim(make(PersistentVolumeClaim)).spec.storage_class_name == "new"
    none = make(PersistentVolumeClaim, spec={"storageClassName": ""})
    assert admission.admit_claim(none).spec.storage_class_name == ""


def test_uid_and_phase_mark_a_stored_object():
    assert not is_stored(pod())
    assert is_stored(make(Pod, metadata={"name": "p", "uid": "1"}))
    assert is_stored(make(Pod, status={"phase": "Running"}))
