"""The comparison of the model's scale-down with the recorded runs, part by part.

Contract: pure. The parts are the removable nodes, the reasons of the kept nodes, the utilization of each node, and the
nodes that are deleted later. A part is exact if it equals the recorded run in the file's own order. Cluster Autoscaler
iterates over maps, which Go does in random order, so runs on the same input differ in where pods move. A part therefore
agrees if it equals that of some recorded run with the same removable nodes. From such a run only the reason of each
node is compared, not the pod that blocks it, because that also depends on a random order. If no recorded run has the
same removable nodes, they agree if every node was removed in some run, and the nodes that every run removed are among
them.

In every run a random order also decides which nodes stay for a group's minimum, and which node is drained first. There
the model's choice must be a possible one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from tutti.autoscalers.cluster_autoscaler.scaledown_records import NodesToDelete, ScaleDownDecision, UnremovableNode
from tutti.conformance.scale_down_cases import ScaleDownCase

REMOVABLE, REASONS, UTILIZATION, DELETED = "removable", "reasons", "utilization", "deleted"
PARTS = (REMOVABLE, REASONS, UTILIZATION, DELETED)
MIN_SIZE = "NodeGroupMinSizeReached"
_UTILIZATION_TOLERANCE = 1e-6
"""Recorded utilizations are rounded."""


class ComparedPart(NamedTuple):
    """The comparison of one part."""

    exact: bool
    agrees: bool
    recorded: Any = None
    """The part of the recorded run in the file's own order, if the model's part differs."""
    ours: Any = None


def compare_scale_down(case: ScaleDownCase, ours: ScaleDownDecision) -> dict[str, ComparedPart]:
    """Compare every part of the model's decision with the recorded runs; return the comparisons by name of the part."""
    recorded, *other_runs = case.answers
    same_nodes = [each for each in other_runs if set(each.removable) == set(ours.removable)]
    removable, groups = sorted(ours.removable), {name: group.name for group in case.groups for name in group.members}
    wrong_reasons = _different_reasons(recorded.kept, ours.kept)
    wrong_utilizations = _different_utilizations(recorded.utilization, ours.utilization)
    return {
        REMOVABLE: _part(
            removable == sorted(recorded.removable),
            bool(same_nodes) or _is_within_all_runs(case, ours),
            recorded=sorted(recorded.removable),
            ours=removable,
        ),
        REASONS: _part(
            not wrong_reasons,
            any(_reasons(each) == _reasons(ours) for each in same_nodes)
            or (not same_nodes and _keeps_certain_nodes(case, ours)),
            recorded={name: recorded.kept.get(name) for name in wrong_reasons},
            ours={name: ours.kept.get(name) for name in wrong_reasons},
        ),
        UTILIZATION: _part(
            not wrong_utilizations,
            recorded={name: recorded.utilization.get(name) for name in wrong_utilizations},
            ours={name: ours.utilization.get(name) for name in wrong_utilizations},
        ),
        DELETED: _part(
            is_possible_deletion(ours.deleted, recorded.deleted, groups),
            any(is_possible_deletion(ours.deleted, each.deleted, groups) for each in same_nodes)
            or (not same_nodes and _is_within_all_runs(case, ours)),
            recorded=recorded.deleted,
            ours=ours.deleted,
        ),
    }


def _part(exact: bool, agrees: bool = False, *, recorded: Any, ours: Any) -> ComparedPart:
    return (
        ComparedPart(exact=True, agrees=True)
        if exact
        else ComparedPart(exact=False, agrees=agrees, recorded=recorded, ours=ours)
    )


def _different_reasons(theirs: Mapping[str, UnremovableNode], ours: Mapping[str, UnremovableNode]) -> list[str]:
    return sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))


def _different_utilizations(theirs: Mapping[str, float], ours: Mapping[str, float]) -> list[str]:
    missing = theirs.keys() ^ ours.keys()
    common = theirs.keys() & ours.keys()
    return sorted(missing | {name for name in common if abs(theirs[name] - ours[name]) > _UTILIZATION_TOLERANCE})


def _reasons(decision: ScaleDownDecision) -> dict[str, tuple[str, bool]]:
    return {name: (kept.reason, kept.prefiltered) for name, kept in decision.kept.items()}


def _is_within_all_runs(case: ScaleDownCase, ours: ScaleDownDecision) -> bool:
    """Return whether the removable nodes are within the range of all recorded runs."""
    if case.counts is None:
        return False
    nodes = set(ours.removable)
    return case.always <= nodes <= case.always | case.sometimes and case.counts[0] <= len(nodes) <= case.counts[1]


def _keeps_certain_nodes(case: ScaleDownCase, ours: ScaleDownDecision) -> bool:
    """Return whether the nodes that no run removed are kept for the recorded reasons."""
    recorded_reasons, our_reasons = _reasons(case.answers[0]), _reasons(ours)
    return _is_within_all_runs(case, ours) and all(
        our_reasons.get(name) == reason for name, reason in recorded_reasons.items() if name not in case.sometimes
    )


def is_possible_deletion(ours: NodesToDelete, theirs: NodesToDelete, group_of: Mapping[str, str]) -> bool:
    """Return whether two deletions differ only in nodes that stay for a group's minimum, and in the first batch."""
    return _certain_part(ours, group_of) == _certain_part(theirs, group_of) and _is_possible_batch(ours, theirs)


def _certain_part(deleted: NodesToDelete, group_of: Mapping[str, str]) -> tuple[object, ...]:
    """Return the part of a deletion that no random order decides.

    In a group that keeps nodes for its minimum, only the number of nodes is certain.
    """
    at_minimum = {group_of[name] for name, reason in deleted.held.items() if reason == MIN_SIZE}
    lists = [
        (
            {name for name in names if group_of[name] not in at_minimum},
            Counter(group_of[name] for name in names if group_of[name] in at_minimum),
        )
        for names in (deleted.empty, deleted.drain)
    ]
    certain = {name: reason for name, reason in deleted.held.items() if group_of[name] not in at_minimum}
    reasons = Counter((group_of[name], reason) for name, reason in deleted.held.items())
    return lists, certain, reasons, {*deleted.empty, *deleted.drain, *deleted.held}


def _is_possible_batch(ours: NodesToDelete, theirs: NodesToDelete) -> bool:
    """Return whether the first batches have equally many nodes, and ours only nodes that are deleted."""
    same_size = all(
        len(mine) == len(other)
        for mine, other in ((ours.first_empty, theirs.first_empty), (ours.first_drain, theirs.first_drain))
    )
    return same_size and {*ours.first_empty} <= {*ours.empty} and {*ours.first_drain} <= {*ours.drain}
