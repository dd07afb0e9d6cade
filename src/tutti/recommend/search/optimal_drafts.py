"""The optimal strategy: drafts by column generation, one for every zone layout worth a try.

Contract: pure; stops at the work budget. A draft is never dearer than a seed that places as many pods, by the numbers
of the problem; a binder decides later whether the pods fit (`recommend.replay`). When limits leave no room for all
pods, pods of a higher priority are packed first, priority by priority.
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
from tutti.recommend.search.column_generation.solve import ReportCosts, solve
from tutti.recommend.search.lower_bound import is_pure_packing
from tutti.recommend.search.packing_problem import packing_input_of_layout
from tutti.recommend.search.zone_layouts import ZoneLayout, zone_layouts


class BoundedDrafts(NamedTuple):
    """Drafts, the best first, and the lower bound on the cost of every plan for the whole demand (0: not known)."""

    drafts: tuple[Draft, ...]
    bound: float


def optimize(
    problem: Problem,
    demand: Ints,
    prices: Floats,
    budget: WorkBudget,
    *,
    seeds: Sequence[Draft] = (),
    values: Floats | None = None,
    report: ReportCosts | None = None,
) -> BoundedDrafts:
    """Return the best drafts found within the budget; `values` breaks ties between pods that cannot all be placed."""
    ranked: list[tuple[int, float, int, Draft]] = []
    bound = 0.0
    layouts = zone_layouts(problem, demand, hint=seeds[0] if seeds else None)
    for place, layout in enumerate(layouts):
        if place and budget.is_exhausted():
            break
        budget.meter.count += LAYOUT
        part_budget = budget.share(0.6 if place == 0 and len(layouts) > 1 else 1 / (len(layouts) - place))
        inputs = packing_input_of_layout(problem, layout, prices)
        patterns = [_as_patterns(problem, layout, draft) for draft in seeds]
        packing, proved_bound = _pack_by_priority(problem, layout, inputs, part_budget, patterns, values, report)
        if place == 0 and is_pure_packing(problem):
            bound = proved_bound
        draft = _draft(problem, layout, packing, demand)
        ranked.append((int(packing.dropped.sum()), packing.cost(inputs), place, draft))
    ranked.sort(key=lambda each: each[:3])
    return BoundedDrafts(tuple(draft for *_, draft in ranked), bound)


def _pack_by_priority(
    problem: Problem,
    layout: ZoneLayout,
    inputs: PackingInput,
    budget: WorkBudget,
    seeds: Sequence[list[tuple[int, list[int]]]],
    values: Floats | None,
    report: ReportCosts | None,
) -> tuple[Packing, float]:
    """Pack all pods; if some are dropped, pack again priority by priority, the highest first."""
    share_values = None if values is None else values[[share.number for share in layout.shares]]
    priorities = sorted({problem.classes[share.number].priority for share in layout.shares}, reverse=True)
    first_budget = budget.share(0.8) if len(inputs.limit_left) else budget
    solved = solve(inputs, first_budget, seeds=seeds, values=share_values, report=report)
    if not solved.packing.dropped.any():
        return solved.packing, solved.bound
    if len(priorities) <= 1:
        reduced = inputs.with_demand(inputs.demand - solved.packing.dropped)
        repacked = solve(reduced, budget, seeds=[*seeds, solved.packing.nodes]).packing
        best = (
            solved.packing
            if repacked.dropped.any() or repacked.cost(inputs) > solved.packing.cost(inputs)
            else repacked
        )
        return best._replace(dropped=solved.packing.dropped), 0.0
    priority_of_share = np.array([problem.classes[share.number].priority for share in layout.shares])
    covered = np.zeros_like(inputs.demand)
    best = solved.packing._replace(nodes=())
    for place, priority in enumerate(priorities):
        if place and budget.is_exhausted():
            break
        demanded = np.where(priority_of_share == priority, inputs.demand, covered)
        part_budget = budget.share(1 / (len(priorities) - place))
        known_seeds = [*seeds, best.nodes]
        packing = solve(
            inputs.with_demand(demanded),
            part_budget,
            seeds=known_seeds,
            values=share_values,
            mandatory=priority_of_share > priority,
        ).packing
        covered = demanded - packing.dropped
        best = packing
    return best._replace(dropped=inputs.demand - covered), 0.0


def _as_patterns(problem: Problem, layout: ZoneLayout, draft: Draft) -> list[tuple[int, list[int]]]:
    """Return the nodes of a draft as patterns over the shares of a layout, without pods that do not match it."""
    class_of_pod = problem.class_of_pod
    shares_of: dict[int, list[int]] = {}
    for place, share in enumerate(layout.shares):
        shares_of.setdefault(share.number, []).append(place)
    nodes = []
    for draft_node in draft.nodes:
        labels = problem.offerings[draft_node.offering].node.metadata.labels or {}
        pattern = [0] * len(layout.shares)
        pod_counts = Counter(number for pod in draft_node.pods if (number := class_of_pod.get(pod)) is not None)
        for number, count in pod_counts.items():
            for place in shares_of.get(number, ()):
                share = layout.shares[place]
                if all(labels.get(key) == value for key, value in share.required_labels):
                    has_whole_bundle = all(pod_counts[other] >= needed for other, needed in share.bundle)
                    pattern[place] = int(has_whole_bundle) if share.bundle else count
                    break
        nodes.append((draft_node.offering, pattern))
    return nodes


def _draft(problem: Problem, layout: ZoneLayout, packing: Packing, demand: Ints) -> Draft:
    """Assign the pods of every class to the nodes of a packing."""
    pods_of_class = [list(each.pods[: int(count)]) for each, count in zip(problem.classes, demand, strict=True)]
    taken_count = [0] * len(pods_of_class)

    def take(counts: Iterable[int]) -> list[str]:
        taken: list[str] = []
        for share, count in zip(layout.shares, counts, strict=True):
            for number, per_item in share.item_pods if count else ():
                first = taken_count[number]
                taken_count[number] = first + int(count) * per_item
                taken += pods_of_class[number][first : taken_count[number]]
        return taken

    nodes = tuple(DraftNode(kind, tuple(take(pattern))) for kind, pattern in packing.nodes)
    on_existing = []
    for node, counts in zip(problem.nodes, packing.on_existing.tolist(), strict=True):
        on_existing += [(pod, node) for pod in take(counts)]
    left = tuple(pod for place, pods in enumerate(pods_of_class) for pod in pods[taken_count[place] :])
    return Draft(f"optimal, {layout.name}" if layout.name != "all" else "optimal", nodes, tuple(on_existing), left)
