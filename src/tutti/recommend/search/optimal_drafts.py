"""The optimal strategy: drafts from column generation, for every layout that is worth a try.

Contract: pure but for the clock; the picture is only read. A draft is never dearer than a seed that places as many
pods, as far as the numbers go: the engine has its say later (`realise`). When limits leave no room for everybody, pods
of a higher priority are served first, level by level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import LAYOUT
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.draft import Draft, DraftNode
from tutti.recommend.search.column_generation.packing import Packing
from tutti.recommend.search.column_generation.packing_input import PackingInput
from tutti.recommend.search.column_generation.solve import Tell, bound_of, solve
from tutti.recommend.search.packing_problem import ROOMS, bound_flat, flat_of
from tutti.recommend.search.zone_layouts import ZoneLayout, layouts


class BoundedDrafts(NamedTuple):
    """Drafts, the cheapest first, and what no plan for all of the demand can cost less than (0: not known)."""

    drafts: tuple[Draft, ...]
    bound: float


def optimum(
    problem: Problem,
    demand: Ints,
    prices: Floats,
    budget: WorkBudget,
    *,
    seeds: Sequence[Draft] = (),
    values: Floats | None = None,
    tell: Tell | None = None,
) -> BoundedDrafts:
    """The best drafts that can be found in the time given; `values` says which pods matter more among equals."""
    found: list[tuple[int, float, int, Draft]] = []
    bound = 0.0
    ways = layouts(problem, demand, hint=seeds[0] if seeds else None)
    for place, layout in enumerate(ways):
        if place and budget.is_exhausted():
            break
        budget.meter.count += LAYOUT
        part = budget.share(0.6 if place == 0 and len(ways) > 1 else 1 / (len(ways) - place))
        flat = flat_of(problem, layout, prices)
        started = [_as_patterns(problem, layout, draft) for draft in seeds]
        packing, proved = _by_priority(problem, layout, flat, part, started, values, tell)
        if place == 0 and is_plain(problem):
            bound = proved
        draft = _draft(problem, layout, packing, demand)
        found.append((int(packing.dropped.sum()), packing.cost(flat), place, draft))
    found.sort(key=lambda each: each[:3])
    return BoundedDrafts(tuple(draft for *_, draft in found), bound)


def is_plain(problem: Problem) -> bool:
    """Whether the packing problem of the first layout is the whole problem, so that its bound is one for all plans."""
    rules = problem.rules
    host = rules.host
    return not rules.domains and not host.skewed.any() and not host.together and len(problem.room) <= ROOMS


def prove(problem: Problem, demand: Ints, prices: Floats, budget: WorkBudget, *, known: Sequence[DraftNode]) -> float:
    """What no plan that places these pods can cost less than, given one that does."""
    if not demand.any() or not len(problem.offerings):
        return 0.0
    cost = float(sum(prices[bought.offering] for bought in known))
    return bound_of(bound_flat(problem, demand, prices), budget, cost=cost)


def _by_priority(
    problem: Problem,
    layout: ZoneLayout,
    flat: PackingInput,
    budget: WorkBudget,
    seeds: Sequence[list[tuple[int, list[int]]]],
    values: Floats | None,
    tell: Tell | None,
) -> tuple[Packing, float]:
    """Pack everybody; if that cannot be, level by level."""
    worth = None if values is None else values[[share.number for share in layout.shares]]
    levels = sorted({problem.classes[share.number].priority for share in layout.shares}, reverse=True)
    first = budget.share(0.8) if len(flat.left) else budget
    solved = solve(flat, first, seeds=seeds, values=worth, tell=tell)
    if not solved.packing.dropped.any():
        return solved.packing, solved.bound
    if len(levels) <= 1:
        kept = flat.with_demand(flat.demand - solved.packing.dropped)
        again = solve(kept, budget, seeds=[*seeds, solved.packing.nodes]).packing
        best = solved.packing if again.dropped.any() or again.cost(flat) > solved.packing.cost(flat) else again
        return best._replace(dropped=solved.packing.dropped), 0.0
    level_of = np.array([problem.classes[share.number].priority for share in layout.shares])
    served = np.zeros_like(flat.demand)
    best = solved.packing._replace(nodes=())
    for place, level in enumerate(levels):
        if place and budget.is_exhausted():
            break
        wanted = np.where(level_of == level, flat.demand, served)
        part = budget.share(1 / (len(levels) - place))
        known = [*seeds, best.nodes]
        packing = solve(flat.with_demand(wanted), part, seeds=known, values=worth, firm=level_of > level).packing
        served = wanted - packing.dropped
        best = packing
    return best._replace(dropped=flat.demand - served), 0.0


def _as_patterns(problem: Problem, layout: ZoneLayout, draft: Draft) -> list[tuple[int, list[int]]]:
    """The nodes of a draft as patterns over the shares of a layout, as far as they agree with it."""
    number_of = problem.of_pod
    shares_of: dict[int, list[int]] = {}
    for place, share in enumerate(layout.shares):
        shares_of.setdefault(share.number, []).append(place)
    nodes = []
    for bought in draft.bought:
        labels = problem.offerings[bought.offering].node.metadata.labels or {}
        pattern = [0] * len(layout.shares)
        there = Counter(number for pod in bought.pods if (number := number_of.get(pod)) is not None)
        for number, count in there.items():
            for place in shares_of.get(number, ()):
                share = layout.shares[place]
                if all(labels.get(key) == value for key, value in share.places):
                    whole = all(there[other] >= wanted for other, wanted in share.bundle)
                    pattern[place] = int(whole) if share.bundle else count
                    break
        nodes.append((bought.offering, pattern))
    return nodes


def _draft(problem: Problem, layout: ZoneLayout, packing: Packing, demand: Ints) -> Draft:
    """Deal out the pods of every class to the nodes of a packing."""
    piles = [list(each.pods[: int(count)]) for each, count in zip(problem.classes, demand, strict=True)]
    at = [0] * len(piles)

    def take(counts: Iterable[int]) -> list[str]:
        pods: list[str] = []
        for share, count in zip(layout.shares, counts, strict=True):
            for number, each in share.each if count else ():
                first = at[number]
                at[number] = first + int(count) * each
                pods += piles[number][first : at[number]]
        return pods

    bought = tuple(DraftNode(kind, tuple(take(pattern))) for kind, pattern in packing.nodes)
    on_existing = []
    for node, counts in zip(problem.nodes, packing.moved.tolist(), strict=True):
        on_existing += [(pod, node) for pod in take(counts)]
    left = tuple(pod for place, pile in enumerate(piles) for pod in pile[at[place] :])
    return Draft(f"optimal, {layout.name}" if layout.name != "all" else "optimal", bought, tuple(on_existing), left)
