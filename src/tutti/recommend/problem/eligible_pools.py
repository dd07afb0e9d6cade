"""Which pools can be bought from for the pending pods, and why not from the other pools.

Contract: pure. A pool is not eligible when limits leave no room for a node of any of its offerings, when no pending pod
tolerates its taints, when no pending pod fits an empty node of the pool, or when the objective is cost and only other
pools have a known price. The status gives the reason in one line. An eligible pool can have a line too: that it has
fewer nodes than its minimum.
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
    """The status of every pool, and the offerings that can be bought."""

    pools: tuple[PoolStatus, ...]
    mask: Bools
    """For each offering: whether limits allow one more node, and a pending pod fits an empty node."""


def filter_eligible(
    planning: PlanningCluster, problem: Problem, catalogue: Catalogue, *, objective: Objective = Objective.COST
) -> EligibleOfferings:
    """Return the status of every pool, and the mask of offerings that can be bought and take a pending pod."""
    blocking = _blocking_limits(problem)
    takes_pods = problem.allowed.any(axis=1)
    priced = np.array([offering.price is not None for offering in problem.offerings], dtype=bool)
    needs_price = objective == Objective.COST and bool((priced & takes_pods & _is_unblocked(blocking)).any())
    mask: Bools = takes_pods & _is_unblocked(blocking)
    if needs_price:
        mask &= priced
    statuses, first = [], 0
    for pool in catalogue.pools:
        rows = range(first, first + len(pool.offerings))
        first = rows.stop
        if mask[rows.start : rows.stop].any():
            statuses.append(PoolStatus(pool=pool.name, eligible=True, reason=_below_minimum(pool)))
        else:
            reason = _reason(planning, problem, pool, rows, [blocking[row] for row in rows])
            statuses.append(PoolStatus(pool=pool.name, eligible=False, reason=reason))
    return EligibleOfferings(tuple(statuses), mask)


def _blocking_limits(problem: Problem) -> list[str | None]:
    """Return for each offering the reason of the first limit that leaves no room for one more node, or None."""
    reasons: list[str | None] = [None] * len(problem.offerings)
    for limit in problem.limits:
        for row in np.flatnonzero(limit.takes > limit.left).tolist():
            reasons[row] = reasons[row] or limit.reason
    return reasons


def _is_unblocked(blocking: Sequence[str | None]) -> Bools:
    """Return which offerings no limit blocks."""
    return np.array([reason is None for reason in blocking], dtype=bool)


def _reason(
    planning: PlanningCluster, problem: Problem, pool: NodePool, rows: range, blocking: Sequence[str | None]
) -> str:
    """Return why no offering of a pool can be bought."""
    if not pool.offerings:
        return "nothing is offered in it"
    if not problem.classes:
        return "no pod waits"
    limits = list(dict.fromkeys(reason for reason in blocking if reason is not None))
    if limits and all(blocking):
        return "; ".join(limits)
    takes_pods = np.atleast_1d(problem.allowed[rows.start : rows.stop].any(axis=1))
    if not takes_pods.any():
        return _unfit_reason(planning, problem, pool, rows)
    if limits:  # either every offering that takes pods is blocked, or only other offerings are
        useful_blocking = [
            reason
            for reason, is_useful in zip(blocking, takes_pods.tolist(), strict=True)
            if is_useful and reason is not None
        ]
        if len(useful_blocking) == int(takes_pods.sum()):
            return "; ".join(dict.fromkeys(useful_blocking))
    return "no known price, while other pools have one"


def _unfit_reason(planning: PlanningCluster, problem: Problem, pool: NodePool, rows: range) -> str:
    """Return why no pending pod fits an empty node of a pool."""
    cluster = planning.cluster
    specs = [cluster.spec_of(cluster.pod_row(each.pods[0])) for each in problem.classes]
    refusals: list[Taint] = []
    tolerated = False
    for taints in {tuple(offering.node.spec.taints or ()) for offering in pool.offerings}:
        hard = [taint for taint in taints if taint.effect in HARD_EFFECTS]
        untolerated = [first_untolerated(hard, spec.tolerations) for spec in specs]
        tolerated |= any(taint is None for taint in untolerated)
        refusals += [taint for taint in untolerated if taint is not None]
    if not tolerated:
        names = sorted({_taint_text(taint) for taint in refusals})
        return f"no waiting pod tolerates its taint{'s' if len(names) > 1 else ''} {', '.join(names)}"
    free = problem.free[rows.start : rows.stop]
    fits = (problem.requests[np.newaxis, :, :] <= free[:, np.newaxis, :]).all(axis=2)
    if not fits.any():
        return "no waiting pod is small enough for an empty node of it"
    return (
        "no waiting pod that is small enough may run there: node selectors, affinities, taints or volumes do not match"
    )


def _taint_text(taint: Taint) -> str:
    """Return a taint as kubectl prints it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _below_minimum(pool: NodePool) -> str:
    """Return a line if the pool has fewer nodes than its minimum, else an empty string."""
    if pool.current >= pool.minimum:
        return ""
    return f"it has {pool.current} of at least {pool.minimum} nodes"
