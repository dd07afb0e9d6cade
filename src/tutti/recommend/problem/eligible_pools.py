"""Which pools can be bought from for the pods that wait, and why not from the others.

Contract: pure. A pool is out when limits leave no room for a node of any of its offerings, when its taints keep every
waiting pod off, when no waiting pod fits an empty node of it, or when prices decide and only others have one. One line
says why. A pool that can be bought from may have a line too: that it has fewer nodes than it shall have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools
from tutti.kube.objects import Taint
from tutti.kube.taints import HARD_EFFECTS, first_untolerated
from tutti.market.offerings import Catalogue, NodePool
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.recommendation import PoolStatus
from tutti.recommend.records.request import Objective


class EligibleOfferings(NamedTuple):
    """What may be bought."""

    pools: tuple[PoolStatus, ...]
    mask: Bools
    """Of each offering of the problem, whether a node of it may be bought now and takes some waiting pod."""


def filter_eligible(
    planning: PlanningCluster, problem: Problem, catalogue: Catalogue, *, objective: Objective = Objective.COST
) -> EligibleOfferings:
    """Sort out the pools and offerings that cannot help."""
    blocked = _blocked(problem)
    useful = problem.allowed.any(axis=1)
    priced = np.array([offering.price is not None for offering in problem.offerings], dtype=bool)
    matters = objective == Objective.COST and bool((priced & useful & _free_of(blocked)).any())
    mask: Bools = useful & _free_of(blocked)
    if matters:
        mask &= priced
    statuses, first = [], 0
    for pool in catalogue.pools:
        rows = range(first, first + len(pool.offerings))
        first = rows.stop
        if mask[rows.start : rows.stop].any():
            statuses.append(PoolStatus(pool=pool.name, eligible=True, reason=_below_minimum(pool)))
        else:
            reason = _reason(planning, problem, pool, rows, [blocked[row] for row in rows])
            statuses.append(PoolStatus(pool=pool.name, eligible=False, reason=reason))
    return EligibleOfferings(tuple(statuses), mask)


def _blocked(problem: Problem) -> list[str | None]:
    """For each offering the limit that leaves no room for one more node."""
    found: list[str | None] = [None] * len(problem.offerings)
    for limit in problem.limits:
        for row in np.flatnonzero(limit.takes > limit.left).tolist():
            found[row] = found[row] or limit.reason
    return found


def _free_of(blocked: Sequence[str | None]) -> Bools:
    return np.array([why is None for why in blocked], dtype=bool)


def _reason(
    planning: PlanningCluster, problem: Problem, pool: NodePool, rows: range, blocked: Sequence[str | None]
) -> str:
    """Why no offering of a pool may be bought."""
    if not pool.offerings:
        return "nothing is offered in it"
    if not problem.classes:
        return "no pod waits"
    limits = list(dict.fromkeys(why for why in blocked if why is not None))
    if limits and all(blocked):
        return "; ".join(limits)
    useful = np.atleast_1d(problem.allowed[rows.start : rows.stop].any(axis=1))
    if not useful.any():
        return _of_no_use(planning, problem, pool, rows)
    if limits:  # those of use are blocked, or the others are
        left = [why for why, use in zip(blocked, useful.tolist(), strict=True) if use and why is not None]
        if len(left) == int(useful.sum()):
            return "; ".join(dict.fromkeys(left))
    return "no known price, while other pools have one"


def _of_no_use(planning: PlanningCluster, problem: Problem, pool: NodePool, rows: range) -> str:
    """Why no waiting pod fits an empty node of a pool."""
    cluster = planning.cluster
    specs = [cluster.spec_of(cluster.pod_row(each.pods[0])) for each in problem.classes]
    refusals: list[Taint] = []
    borne = False
    for taints in {tuple(offering.node.spec.taints or ()) for offering in pool.offerings}:
        hard = [taint for taint in taints if taint.effect in HARD_EFFECTS]
        found = [first_untolerated(hard, spec.tolerations) for spec in specs]
        borne |= any(taint is None for taint in found)
        refusals += [taint for taint in found if taint is not None]
    if not borne:
        names = sorted({_text(taint) for taint in refusals})
        return f"no waiting pod tolerates its taint{'s' if len(names) > 1 else ''} {', '.join(names)}"
    free = problem.free[rows.start : rows.stop]
    fits = (problem.requests[np.newaxis, :, :] <= free[:, np.newaxis, :]).all(axis=2)
    if not fits.any():
        return "no waiting pod is small enough for an empty node of it"
    return (
        "no waiting pod that is small enough may run there: node selectors, affinities, taints or volumes do not match"
    )


def _text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _below_minimum(pool: NodePool) -> str:
    if pool.current >= pool.minimum:
        return ""
    return f"it has {pool.current} of at least {pool.minimum} nodes"
