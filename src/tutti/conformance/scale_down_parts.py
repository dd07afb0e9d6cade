"""A scale-down of the model beside what was recorded, part by part.

Contract: pure. The parts are which nodes are removable, why the others are kept, how much of each is asked for, and
what is deleted later. A part is exact if it is that of the run in the file's own order. Cluster Autoscaler holds the
nodes that pods may move to in a map, and Go shuffles maps, so two runs on the same input differ where it matters who
moved where; a part agrees if it is that of some recorded run with the same removable nodes. Of such a run only how each
node fared is compared, not which of its pods blocked first: that depends on the shuffled order of pods. If no recorded
run removed just these nodes, they agree if they are within what all runs removed.

What a group's minimum keeps, and which node is drained first, is left to the order of a map as well, in every run.
There ours must be one of what could have been chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from tutti.autoscalers.cluster_autoscaler.scaledown_records import NodesToDelete, ScaleDownDecision, UnremovableNode
from tutti.conformance.scale_down_cases import RemovalCase

REMOVABLE, REASONS, UTILIZATION, DELETED = "removable", "reasons", "utilization", "deleted"
PARTS = (REMOVABLE, REASONS, UTILIZATION, DELETED)
MIN_SIZE = "NodeGroupMinSizeReached"
_CLOSE = 1e-6
"""Recorded shares are rounded."""


class ComparedPart(NamedTuple):
    """How one part came out."""

    exact: bool
    agrees: bool
    recorded: Any = None
    """What the run in the file's own order gave, if ours is not that."""
    ours: Any = None


def removal_parts(case: RemovalCase, ours: ScaleDownDecision) -> dict[str, ComparedPart]:
    """Every part by name."""
    canon, *others = case.answers
    alike = [each for each in others if set(each.removable) == set(ours.removable)]
    removable, groups = sorted(ours.removable), {name: group.name for group in case.groups for name in group.members}
    wrong = _otherwise(canon.kept, ours.kept)
    shares = _apart(canon.utilization, ours.utilization)
    return {
        REMOVABLE: _part(
            removable == sorted(canon.removable),
            bool(alike) or _is_within(case, ours),
            recorded=sorted(canon.removable),
            ours=removable,
        ),
        REASONS: _part(
            not wrong,
            any(_fared(each) == _fared(ours) for each in alike) or (not alike and _is_sure(case, ours)),
            recorded={name: canon.kept.get(name) for name in wrong},
            ours={name: ours.kept.get(name) for name in wrong},
        ),
        UTILIZATION: _part(
            not shares,
            recorded={name: canon.utilization.get(name) for name in shares},
            ours={name: ours.utilization.get(name) for name in shares},
        ),
        DELETED: _part(
            could_be(ours.deleted, canon.deleted, groups),
            any(could_be(ours.deleted, each.deleted, groups) for each in alike)
            or (not alike and _is_within(case, ours)),
            recorded=canon.deleted,
            ours=ours.deleted,
        ),
    }


def _part(exact: bool, agrees: bool = False, *, recorded: Any, ours: Any) -> ComparedPart:
    return (
        ComparedPart(exact=True, agrees=True)
        if exact
        else ComparedPart(exact=False, agrees=agrees, recorded=recorded, ours=ours)
    )


def _otherwise(theirs: Mapping[str, UnremovableNode], ours: Mapping[str, UnremovableNode]) -> list[str]:
    return sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))


def _apart(theirs: Mapping[str, float], ours: Mapping[str, float]) -> list[str]:
    missing = theirs.keys() ^ ours.keys()
    return sorted(missing | {name for name in theirs.keys() & ours.keys() if abs(theirs[name] - ours[name]) > _CLOSE})


def _fared(removals: ScaleDownDecision) -> dict[str, tuple[str, bool]]:
    return {name: (kept.reason, kept.prefiltered) for name, kept in removals.kept.items()}


def _is_within(case: RemovalCase, ours: ScaleDownDecision) -> bool:
    """Whether a removal is within what all runs removed."""
    if case.counts is None:
        return False
    found = set(ours.removable)
    return case.always <= found <= case.always | case.sometimes and case.counts[0] <= len(found) <= case.counts[1]


def _is_sure(case: RemovalCase, ours: ScaleDownDecision) -> bool:
    """Whether the nodes that no run removed are kept for the recorded reasons."""
    theirs, mine = _fared(case.answers[0]), _fared(ours)
    return _is_within(case, ours) and all(
        mine.get(name) == outcome for name, outcome in theirs.items() if name not in case.sometimes
    )


def could_be(ours: NodesToDelete, theirs: NodesToDelete, group_of: Mapping[str, str]) -> bool:
    """Whether two deletions are the same but for who stays for a group's minimum, and who goes first."""
    return _told(ours, group_of) == _told(theirs, group_of) and _is_batch(ours, theirs)


def _told(deleted: NodesToDelete, group_of: Mapping[str, str]) -> tuple[object, ...]:
    """What of a deletion is not left to chance: nodes of groups that some have to stay in are counted alone."""
    short = {group_of[name] for name, reason in deleted.held.items() if reason == MIN_SIZE}
    lists = [
        (
            {name for name in names if group_of[name] not in short},
            Counter(group_of[name] for name in names if group_of[name] in short),
        )
        for names in (deleted.empty, deleted.drain)
    ]
    sure = {name: reason for name, reason in deleted.held.items() if group_of[name] not in short}
    reasons = Counter((group_of[name], reason) for name, reason in deleted.held.items())
    return lists, sure, reasons, {*deleted.empty, *deleted.drain, *deleted.held}


def _is_batch(ours: NodesToDelete, theirs: NodesToDelete) -> bool:
    """Whether as many nodes go at once, all of them among those that are deleted."""
    as_many = all(
        len(mine) == len(other)
        for mine, other in ((ours.first_empty, theirs.first_empty), (ours.first_drain, theirs.first_drain))
    )
    return as_many and {*ours.first_empty} <= {*ours.empty} and {*ours.first_drain} <= {*ours.drain}
