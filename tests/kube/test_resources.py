"""Totals of pods and nodes; the expected values were checked against kube-scheduler's code."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import new_pod
from tutti.kube.objects import Node
from tutti.kube.resource_names import is_counted, is_scalar
from tutti.kube.resources import allocatable, host_ports, incoming_requests, placed_requests, score_requests

MIB = 2**20


def container(name="c", *, restart=None, **requests):
    fields = {"name": name, "resources": {"requests": {key.replace("_", "-"): text for key, text in requests.items()}}}
    return fields | ({"restartPolicy": restart} if restart else {})


def test_a_plain_pod():
    plain = new_pod(containers=[container(cpu="100m", memory="50Mi")])
    assert incoming_requests(plain) == {"cpu": 100, "memory": 50 * MIB}
    assert placed_requests(plain).requests == {"cpu": 100, "memory": 50 * MIB}
    assert score_requests(plain) == {"cpu": 100, "memory": 50 * MIB}


def test_sums_are_rounded_once():
    fine = new_pod(containers=[container("a", cpu="333u", memory="0.3"), container("b", cpu="333u", memory="0.3")])
    assert incoming_requests(fine) == {"cpu": 1, "memory": 1}


def test_init_containers_run_with_the_sidecars_before_them():
    spec = {
        "containers": [container("main", cpu="1")],
        "initContainers": [
            container("first", cpu="5"),
            container("sidecar", restart="Always", cpu="2"),
            container("second", cpu="4"),
        ],
    }
    assert incoming_requests(new_pod(**spec)) == {
        "cpu": 6000
    }  # second + sidecar, more than main + sidecar and than first


def test_pod_level_requests_replace_the_sum_and_overhead_is_added():
    spec = {
        "containers": [container(cpu="1", memory="1Gi", ephemeral_storage="1Gi")],
        "resources": {"requests": {"cpu": "3", "nvidia.com/gpu": "8"}},
        "overhead": {"cpu": "250m"},
    }
    assert incoming_requests(new_pod(**spec)) == {"cpu": 3250, "memory": 2**30, "ephemeral-storage": 2**30}
    assert score_requests(new_pod(**spec))["cpu"] == 1250  # this score counts only containers


def test_missing_requests_count_only_in_scores():
    spec = {"containers": [container("a"), container("b", cpu="0")], "initContainers": [container("i", memory="1Gi")]}
    silent = new_pod(**spec)
    assert incoming_requests(silent) == {"cpu": 0, "memory": 2**30}
    assert score_requests(silent) == {"cpu": 100, "memory": 2**30}
    placed = placed_requests(silent)
    assert (placed.nonzero_cpu, placed.nonzero_memory) == (100, 2**30)


def test_resources_in_pod_level_requests_get_no_default():
    placed = placed_requests(new_pod(containers=[container()], resources={"requests": {"cpu": "50m"}}))
    assert (placed.nonzero_cpu, placed.nonzero_memory) == (50, 200 * MIB)


def resized(reason):
    spec = {"containers": [container("a", cpu="4"), container("b", cpu="1")]}
    status = {
        "containerStatuses": [
            {"name": "a", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}},
        ],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
    }
    return new_pod(status=status, **spec)


def test_a_pending_resize_counts_the_largest_total():
    assert placed_requests(resized("Deferred")).requests == {"cpu": 5000}
    assert incoming_requests(resized("Deferred")) == {"cpu": 5000}


def test_an_infeasible_resize_ignores_spec_and_containers_without_status():
    assert placed_requests(resized("Infeasible")).requests == {"cpu": 3000}


def test_pod_level_status_counts_if_it_is_complete():
    spec = {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}}
    status = {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "4"}}}
    assert placed_requests(new_pod(status=status, **spec)).requests == {"cpu": 4000}
    assert placed_requests(new_pod(status={"allocatedResources": {"cpu": "3"}}, **spec)).requests == {"cpu": 2000}


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 5000).map("{}m".format)),
        min_size=1,
        max_size=3,
    )
)
def test_a_status_equal_to_the_spec_changes_nothing(requests):
    spec = {"containers": [{"name": f"c{i}", "resources": {"requests": r}} for i, r in enumerate(requests)]}
    statuses = [
        {"name": f"c{i}", "allocatedResources": r, "resources": {"requests": r}} for i, r in enumerate(requests)
    ]
    assert placed_requests(new_pod(**spec)) == placed_requests(new_pod(status={"containerStatuses": statuses}, **spec))


def test_only_resources_that_the_scheduler_counts_are_kept():
    counted = ["nvidia.com/gpu", "hugepages-2Mi", "attachable-volumes-aws-ebs", "kubernetes.io/batch-cpu"]
    ignored = ["pods", "storage", "requests.example.com/x", "UPPER_/x", "example.com/", "a/b/c"]
    requests = dict.fromkeys([*counted, *ignored], "1")
    odd = new_pod(containers=[{"name": "c", "resources": {"requests": requests}}])
    assert incoming_requests(odd) == dict.fromkeys(counted, 1)
    assert is_counted("ephemeral-storage")
    assert not is_scalar("cpu")


def test_host_ports_get_defaults_and_init_containers_have_none():
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    spec = {
        "containers": [{"name": "c", "ports": ports}],
        "initContainers": [
            {"name": "i", "ports": [{"containerPort": 1, "hostPort": 1}]},
            {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 2, "hostPort": 2}]},
        ],
    }
    assert host_ports(new_pod(**spec)) == (("0.0.0.0", "TCP", 2), ("10.0.0.1", "UDP", 8081))


@pytest.mark.parametrize("pods", [{}, {"pods": "110"}])
def test_allocatable_includes_the_number_of_pods(pods):
    node = msgspec.convert({"status": {"allocatable": {"cpu": "3920m", "memory": "1Gi", "foo": "1"} | pods}}, Node)
    assert allocatable(node) == {"cpu": 3920, "memory": 2**30} | ({"pods": 110} if pods else {})
