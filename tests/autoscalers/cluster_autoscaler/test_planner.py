"""Cluster Autoscaler's scale-down beside what the real one found, and its rules one by one."""

from __future__ import annotations

from functools import lru_cache, partial
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.support import builders
from tests.support.builders import disruption_budget
from tests.support.paths import VECTORS
from tutti.autoscalers.cluster_autoscaler.planner import cluster_autoscaler_down
from tutti.autoscalers.cluster_autoscaler.scaledown_records import (
    NodesToDelete,
    ScaleDownDecision,
    ScaleDownNodeGroup,
    ScaleDownOptions,
    UnremovableNode,
)
from tutti.autoscalers.cluster_autoscaler.utilization import utilization_of
from tutti.conformance.case_files import read_lines
from tutti.conformance.scale_down_cases import ScaleDownCase, has_scale_down_answer, read_scale_down
from tutti.conformance.scale_down_parts import (
    DELETED,
    PARTS,
    REASONS,
    REMOVABLE,
    UTILIZATION,
    compare_scale_down,
    is_possible_deletion,
)
from tutti.exceptions import InputError
from tutti.kube.objects import Node, Object, Pod
from tutti.kube.times import micros
from tutti.market.planning_cluster import build_cluster

VECTORS = str(VECTORS / "purchases" / "cluster-autoscaler.jsonl.gz")
SHUFFLED = {"drain-rules-kinds1", "pdb-min-size-00", "pdb-min-size-01", "pdb-min-size-03"}
"""Who moves where decides there, and the real one keeps the nodes in a map: these answers came of chance."""


@lru_cache(maxsize=1)
def recorded() -> tuple[ScaleDownCase, ...]:
    lines = list(read_lines(VECTORS))
    return tuple(read_scale_down(VECTORS, number, line) for number, line in lines if has_scale_down_answer(line))


# Beside the real one --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", recorded(), ids=lambda case: case.name)
def test_it_removes_what_the_real_one_removed(case: ScaleDownCase) -> None:
    parts = compare_scale_down(case, case.run())
    assert [what for what in PARTS if not parts[what].agrees] == []
    exact = [what for what in PARTS if parts[what].exact]
    assert exact == ([UTILIZATION] if case.name in SHUFFLED else list(PARTS))


@pytest.mark.parametrize("case", [case for case in recorded() if case.counts is None], ids=lambda case: case.name)
def test_where_every_run_agreed_the_order_of_the_input_does_not_matter(case: ScaleDownCase) -> None:
    for seed in range(5):
        objects = list(case.objects)
        Random(seed).shuffle(objects)
        ours = case._replace(objects=tuple(objects)).run()
        parts = compare_scale_down(case, ours)
        assert all(parts[what].exact for what in (REMOVABLE, UTILIZATION, DELETED))
        assert {name: kept.reason for name, kept in ours.kept.items()} == {
            name: kept.reason for name, kept in case.answers[0].kept.items()
        }


@pytest.mark.parametrize("case", [case for case in recorded() if case.counts], ids=lambda case: case.name)
def test_where_runs_varied_any_order_stays_within_what_was_seen(case: ScaleDownCase) -> None:
    if case.name == "drain-rules-06":  # so many nodes could go that every run found twenty others
        return
    outside = 0
    for seed in range(10):
        objects = list(case.objects)
        Random(seed).shuffle(objects)
        outside += not compare_scale_down(case, case._replace(objects=tuple(objects)).run())[REMOVABLE].agrees
    assert outside <= 2, "a hundred runs have not seen everything"


def test_lines_that_are_no_removal() -> None:
    assert len(recorded()) == 19
    assert not has_scale_down_answer(b'{"kind": "scale-down", "expect": {}}')
    assert not has_scale_down_answer(b"[1]")
    with pytest.raises(InputError, match="line 4"):
        read_scale_down("file", 4, b'{"kind": "scale-down", "expect": {"removable": []}}')


# One by one -----------------------------------------------------------------------------------------------------------

NOW = micros("2026-08-01T12:00:00Z")


node = partial(builders.node, cpu=10, memory="100Gi")


def pod_on(name: str, on: str, cpu: int = 1, *, owner: str = "ReplicaSet", app: str = "a", **how: Any) -> Pod:
    """A pod of a controller, ten hours old."""
    known = {"memory": "1Gi", "created": "2026-08-01T02:00:00Z"}
    return builders.pod(name, cpu, on=on, app=app, owner=(owner, app), **{**known, **how})


def down(*objects: Object, minimum: int = 0, without: tuple[str, ...] = (), **more: Any) -> ScaleDownDecision:
    names = tuple(each.metadata.name for each in objects if isinstance(each, Node))
    group = ScaleDownNodeGroup(name="g", minimum=minimum, members=tuple(name for name in names if name not in without))
    options = ScaleDownOptions(ignore_daemons=more.pop("ignore_daemons", False), threshold=more.pop("threshold", 0.5))
    return cluster_autoscaler_down(build_cluster(objects), [group], options=options, **{"now": NOW, **more})


def test_pods_move_to_what_is_left_until_there_is_no_room() -> None:
    found = down(node("a"), node("b"), node("c"), pod_on("p", "a", 4), pod_on("q", "b", 4), pod_on("r", "c", 4))
    assert found.removable == ("a",), "b gets the pod, or c; then two of 4 are on one node and the other one is full"
    assert {name: kept.reason for name, kept in found.kept.items()} == {
        "b": "NoPlaceToMovePods",
        "c": "NoPlaceToMovePods",
    }
    assert found.utilization == {"a": 0.4, "b": 0.4, "c": 0.4}
    assert found.deleted == NodesToDelete(drain=("a",), first_drain=("a",))


def test_exactly_at_the_threshold_is_underused() -> None:
    objects = (node("a"), node("b"), pod_on("p", "a", 5), pod_on("q", "b", 6))
    assert down(*objects).kept["b"] == UnremovableNode("NotUnderutilized")
    assert down(*objects).kept["a"] == UnremovableNode("NoPlaceToMovePods"), "it was tried"
    assert down(*objects, threshold=0.49).kept["a"] == UnremovableNode("NotUnderutilized")


def test_daemons_count_unless_they_are_ignored() -> None:
    daemon = pod_on("d", "a", 4, owner="DaemonSet", app="d")
    assert utilization_of(node("a"), [daemon, pod_on("p", "a", 2)]) == 0.6
    assert utilization_of(node("a"), [daemon, pod_on("p", "a", 2)], ignore_daemons=True) == 2 / 6
    assert utilization_of(node("a"), [replace(daemon)]) == 0.4
    assert utilization_of(msgspec.convert({"metadata": {"name": "x"}}, Node), []) is None
    gpu = msgspec.convert({"metadata": {"name": "x", "labels": {"k8s.amazonaws.com/accelerator": "a"}}}, Node)
    assert utilization_of(gpu, [pod_on("p", "x", 9)]) == 0.0, "a GPU that is not ready keeps no node"
    found = down(node("a"), daemon, pod_on("p", "a", 2), ignore_daemons=True)
    assert found.kept["a"].reason == "NoPlaceToMovePods"


def test_who_is_not_looked_at() -> None:
    marked = node("m", annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"})
    found = down(node("free"), marked, node("own"), without=("own",))
    assert found.removable == ("free",)
    assert found.kept == {
        "own": UnremovableNode("NotAutoscaled", prefiltered=True),
        "m": UnremovableNode("ScaleDownDisabledAnnotation"),
    }
    assert down(node("a"), node("b"), minimum=2).kept["a"] == UnremovableNode(
        "NodeGroupMinSizeReached", prefiltered=True
    )
    nothing = msgspec.convert({"metadata": {"name": "x"}}, Node)
    assert down(nothing).kept["x"] == UnremovableNode("UnexpectedError")


def test_expendable_and_finished_pods_are_not_seen() -> None:
    expendable = pod_on("x", "a", 9, priority=-50)
    finished = pod_on("y", "a", 9, phase="Succeeded")
    found = down(node("a"), expendable, finished)
    assert (found.removable, found.utilization) == (("a",), {"a": 0.0})
    assert found.deleted.empty == ("a",)


def test_empty_nodes_first_and_no_more_than_twenty() -> None:
    full = [node(f"f{number:02}") for number in range(3)]
    empty = [node(f"e{number:02}") for number in range(22)]
    found = down(*full, *empty, *(pod_on(f"p{each.metadata.name}", each.metadata.name) for each in full))
    assert len(found.removable) == 20
    assert set(found.removable) <= {each.metadata.name for each in empty}
    assert sum(kept == UnremovableNode("NotSimulated", prefiltered=True) for kept in found.kept.values()) == 5
    assert len(found.deleted.empty) == 20
    assert (len(found.deleted.first_empty), found.deleted.first_drain) == (10, ())


def test_a_group_keeps_its_minimum_and_empty_nodes_go_first() -> None:
    found = down(node("a"), node("b"), node("c"), pod_on("p", "a"), minimum=2)
    assert found.removable == ("b", "c"), "empty ones, and then there is no place for the pod"
    assert found.deleted.empty == ("b",)
    assert set(found.deleted.held.values()) == {"NodeGroupMinSizeReached"}


def test_a_pod_that_is_let_finish_holds_its_node_back() -> None:
    waiting = pod_on("p", "a", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"})
    found = down(node("a"), waiting)
    assert found.removable == ("a",)
    assert found.deleted == NodesToDelete(held={"a": "BlockedByOnCompletionPod"})


def test_a_budget_of_one_lets_a_node_with_two_go_but_not_the_next() -> None:
    found = down(
        node("a"),
        node("b"),
        node("c", cpu=40),
        disruption_budget("a", 1),
        pod_on("p", "a"),
        pod_on("q", "a"),
        pod_on("r", "b"),
        pod_on("x", "c", 30),
    )
    assert found.removable == ("a",)
    assert found.kept["b"] == UnremovableNode("BlockedByPod", "default/r", "NotEnoughPdb")


def test_what_can_be_evicted_at_once_is_drained_first() -> None:
    found = down(
        node("a"), node("b", cpu=2), node("c", cpu=40), disruption_budget("a", 1),
        pod_on("p", "a", 2), pod_on("q", "a", 2), pod_on("r", "b", app="b"), pod_on("x", "c", 30, app="b"),
    )  # fmt: skip
    assert found.removable == ("a", "b")
    assert (found.deleted.drain, found.deleted.first_drain) == (("b", "a"), ("b",))


def test_controllers_that_are_gone_and_clocks_that_nobody_has() -> None:
    objects = (node("a"), node("b"), pod_on("p", "a"), pod_on("s", "b", namespace="kube-system"))
    assert down(*objects, missing_controllers=frozenset(["default/ReplicaSet/a"])).kept["a"] == UnremovableNode(
        "BlockedByPod", "default/p", "ControllerNotFound"
    )
    assert down(*objects, now=None).kept["b"] == UnremovableNode(
        "BlockedByPod", "kube-system/s", "UnmovableKubeSystemPod"
    )


def test_the_leaving_node_is_still_a_domain() -> None:
    """Two zones, a spread of one: while the node leaves, its zone is empty, and both pods cannot be in the other."""
    spread = [
        {
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
    ]  # fmt: skip
    nodes = node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})
    pods = [pod_on(name, on, topologySpreadConstraints=spread) for name, on in (("p", "a"), ("q", "b"))]
    found = down(*nodes, *pods, pod_on("big", "b", 6, app="b"))
    assert found.kept["a"] == UnremovableNode("NoPlaceToMovePods")


def test_a_pod_goes_where_it_went_before() -> None:
    """The second pass tries the node of the first one first, so both passes let the same nodes go."""
    nodes = [node(f"n{number}") for number in range(8)]
    pods = [pod_on(f"p{number}", f"n{number}", 2 + number % 2) for number in range(8)]
    found = down(*nodes, *pods)
    assert set(found.deleted.drain) == set(found.removable)
    assert not found.deleted.held


# Comparing ------------------------------------------------------------------------------------------------------------


def test_what_is_left_to_chance_is_not_compared() -> None:
    groups = {"a": "g", "b": "g", "c": "h"}
    theirs = NodesToDelete(
        empty=("a",), drain=("c",), held={"b": "NodeGroupMinSizeReached"}, first_empty=("a",), first_drain=("c",)
    )
    other = NodesToDelete(
        empty=("b",), drain=("c",), held={"a": "NodeGroupMinSizeReached"}, first_empty=("b",), first_drain=("c",)
    )
    assert is_possible_deletion(other, theirs, groups)
    assert not is_possible_deletion(replace(other, first_drain=()), theirs, groups)
    assert not is_possible_deletion(replace(other, drain=(), first_drain=()), theirs, groups)
    assert not is_possible_deletion(replace(other, held={"a": "NoPlaceToMovePods"}), theirs, groups)


def test_a_part_that_is_otherwise_is_told() -> None:
    case = next(each for each in recorded() if each.name == "drain-rules-01")
    ours = case.run()
    name, *rest = ours.removable
    wrong = replace(
        ours,
        removable=tuple(rest),
        kept={**ours.kept, name: UnremovableNode("NoPlaceToMovePods")},
        utilization={},
        deleted=NodesToDelete(),
    )
    parts = compare_scale_down(case, wrong)
    assert not any(part.exact or part.agrees for part in parts.values())
    assert parts[REASONS].recorded == {name: None}
    assert parts[REASONS].ours == {name: UnremovableNode("NoPlaceToMovePods")}
    assert set(parts[REMOVABLE].recorded) - set(parts[REMOVABLE].ours) == {name}
