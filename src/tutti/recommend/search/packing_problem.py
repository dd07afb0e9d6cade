"""From the problem and a zone layout to the input of the packing solver.

Contract: pure. `packing_input_of_layout` is the packing problem of a layout. `bound_packing_input` is a relaxation
without any choice of zones: a bound that holds for the relaxation holds for every layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.recommend.problem.pod_rules import HOSTNAME, UNLIMITED
from tutti.recommend.problem.problem import Problem
from tutti.recommend.search.column_generation.packing_input import PackingInput
from tutti.recommend.search.zone_layouts import ZoneLayout, guaranteed_shares, has_labels

MAX_EXISTING_NODES = 48
"""Up to this many existing nodes are packed one by one; more nodes are pooled by their labels."""
_MANY_CLASSES = 120
"""Above this many classes, the relaxation merges classes of similar size."""


def packing_input_of_layout(problem: Problem, layout: ZoneLayout, prices: Floats) -> PackingInput:
    """Return the packing problem of a layout: one class of items per share."""
    shares = layout.shares
    inputs = _packing_input(
        problem, [share.number for share in shares], np.array([s.items for s in shares], dtype=np.int64), prices
    )
    allowed, node_feasible, requests = inputs.allowed.copy(), inputs.node_feasible.copy(), inputs.requests.copy()
    max_per_node, node_max = inputs.max_per_node.copy(), inputs.node_max.copy()
    for place, share in enumerate(shares):
        if share.bundle:
            numbers = [number for number, _ in share.bundle]
            requests[place] = sum(count * problem.requests[number] for number, count in share.bundle)
            allowed[:, place] = problem.allowed[:, numbers].all(axis=1) & (problem.free >= requests[place]).all(axis=1)
            fits = problem.node_feasible[:, numbers].all(axis=1) & (problem.node_free >= requests[place]).all(axis=1)
            node_feasible[:, place], node_max[:, place], max_per_node[place] = fits, fits, 1
        if share.required_labels:
            has_required = [
                has_labels(offering.node.metadata.labels or {}, share.required_labels) for offering in problem.offerings
            ]
            allowed[:, place] &= np.array(has_required, dtype=bool)
            node_has_required = [has_labels(labels, share.required_labels) for labels in problem.node_labels]
            node_feasible[:, place] &= np.array(node_has_required, dtype=bool)
    if layout.zones is not None:
        outside = np.array([value not in layout.zones for value in problem.domain(layout.key)], dtype=bool)
        in_zones = allowed & ~outside[:, None]
        allowed = np.where(in_zones.any(axis=0), in_zones, allowed)
    return inputs._replace(
        allowed=allowed,
        node_feasible=node_feasible,
        requests=requests,
        max_per_node=max_per_node,
        bound_max_per_node=max_per_node,
        node_max=node_max,
    )


def bound_packing_input(problem: Problem, demand: Ints, prices: Floats) -> PackingInput:
    """Return the relaxed packing problem without choices of zones; many existing nodes are pooled."""
    problem = problem._replace(node_feasible=problem.node_allowed)
    layout = ZoneLayout("bound", tuple(guaranteed_shares(problem, demand)))
    numbers = [share.number for share in layout.shares]
    inputs = packing_input_of_layout(problem, layout, prices)
    max_per_node = _bound_max_per_node(problem, numbers, demand)
    extra = np.where(inputs.node_max > 0, max_per_node - inputs.max_per_node, 0)
    inputs = merge_similar_classes(
        inputs._replace(bound_max_per_node=max_per_node, node_max=inputs.node_max + extra, group_limits=())
    )
    return pool_existing_nodes(inputs, problem.node_labels) if len(inputs.node_free) > MAX_EXISTING_NODES else inputs


def _packing_input(problem: Problem, numbers: Sequence[int], demand: Ints, prices: Floats) -> PackingInput:
    """Return the input with one class of items per class number, without zones."""
    host = problem.rules.host
    groups = tuple((group[numbers], max_items) for group, max_items in host.group_limits)
    max_per_node = host.max_per_node[numbers]
    limits = problem.limits
    return PackingInput(
        requests=problem.requests[numbers].astype(np.float64),
        demand=demand,
        max_per_node=max_per_node,
        bound_max_per_node=max_per_node,
        conflicts=host.conflicts[np.ix_(numbers, numbers)],
        group_limits=tuple((group, max_items) for group, max_items in groups if group.any()),
        free=problem.free.astype(np.float64),
        allowed=problem.allowed[:, numbers],
        price=prices,
        limit_usage=np.array([row.takes for row in limits], dtype=np.float64).reshape(
            len(limits), len(problem.offerings)
        ),
        limit_left=np.array([row.left for row in limits], dtype=np.float64),
        node_free=problem.node_free.astype(np.float64),
        node_feasible=problem.node_feasible[:, numbers],
        node_max=_max_on_existing_nodes(problem, numbers),
    )


def _max_on_existing_nodes(problem: Problem, numbers: Sequence[int]) -> Ints:
    """Return how many pods of each class fit an existing node that takes no pods of other classes."""
    requests = problem.requests[numbers]
    safe = np.where(requests > 0, requests, 1)
    fits = np.where(requests > 0, problem.node_free[:, None, :] // safe, UNLIMITED).min(axis=2)
    node_max: Ints = np.where(
        problem.node_feasible[:, numbers], np.minimum(fits, problem.rules.host.max_per_node[numbers]), 0
    )
    return node_max


def _bound_max_per_node(problem: Problem, numbers: Sequence[int], demand: Ints) -> Ints:
    """Return how many pods of each class one node has at most in any plan: a spread over nodes may allow more."""
    host = problem.rules.host
    max_per_node = host.max_per_node[numbers].copy()
    for place, number in enumerate(numbers):
        if host.has_spread[number] and max_per_node[place] < UNLIMITED:
            min_nodes = 1 if len(problem.node_free) else _min_nodes(problem, number, demand)
            matched_pods = int(demand[host.spread_matched[number]].sum() + host.spread_pods[number])
            max_per_node[place] += matched_pods // max(min_nodes, int(host.spread_nodes[number]))
    return max_per_node


def _min_nodes(problem: Problem, number: int, demand: Ints) -> int:
    """Return the least number of nodes that a class can use: enough for all pods that can run on no other nodes."""
    is_allowed = problem.allowed[:, number]
    only_here = ~(problem.allowed & ~is_allowed[:, None]).any(axis=0)
    total = (problem.requests * np.where(only_here, demand, 0)[:, None]).sum(axis=0)
    largest = np.maximum(problem.free[is_allowed].max(axis=0, initial=1), 1)
    return max(int(np.ceil((total / largest).max(initial=1))), 1)


def merge_similar_classes(inputs: PackingInput) -> PackingInput:
    """Merge classes that may go to the same nodes, with the least requests of any of them: never harder to pack.

    With many classes, similar sizes are merged; with few classes, only equal requests.
    """
    step = np.log(1.02 if len(inputs.demand) <= _MANY_CLASSES else 1.25)
    sizes = np.round(np.log(np.maximum(inputs.requests, 1)) / step).astype(np.int64)
    if len(inputs.demand) <= _MANY_CLASSES // 2:
        sizes = inputs.requests.astype(np.int64)
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for number in range(len(inputs.demand)):
        key = (inputs.allowed[:, number].tobytes(), inputs.node_feasible[:, number].tobytes(), sizes[number].tobytes())
        groups.setdefault((*key, bytes(str(inputs.bound_max_per_node[number]), "ascii")), []).append(number)
    members = list(groups.values())
    if len(members) == len(inputs.demand):
        return inputs
    first_of_group = [group[0] for group in members]
    return inputs._replace(
        requests=np.array([inputs.requests[group].min(axis=0) for group in members]),
        demand=np.array([inputs.demand[group].sum() for group in members], dtype=np.int64),
        max_per_node=np.array([inputs.max_per_node[group].sum() for group in members], dtype=np.int64),
        bound_max_per_node=np.array([inputs.bound_max_per_node[group].sum() for group in members], dtype=np.int64),
        conflicts=np.zeros((len(members), len(members)), dtype=bool),
        group_limits=(),
        allowed=inputs.allowed[:, first_of_group],
        node_feasible=inputs.node_feasible[:, first_of_group],
        node_max=np.stack([inputs.node_max[:, group].sum(axis=1) for group in members], axis=1),
    )


def pool_existing_nodes(inputs: PackingInput, labels: Sequence[Mapping[str, str]]) -> PackingInput:
    """Add up existing nodes that have the same labels: the pool never has less room than the nodes."""
    keys: dict[frozenset[tuple[str, str]], list[int]] = {}
    for node, each in enumerate(labels):
        if inputs.node_feasible[node].any():
            keys.setdefault(frozenset((k, v) for k, v in each.items() if k != HOSTNAME), []).append(node)
    groups = list(keys.values())
    if len(groups) > MAX_EXISTING_NODES:
        groups = [[node for group in groups for node in group]]
    node_free = np.array([inputs.node_free[group].sum(axis=0) for group in groups]).reshape(
        len(groups), inputs.node_free.shape[1]
    )
    node_max = np.array([inputs.node_max[group].sum(axis=0) for group in groups]).reshape(len(groups), -1)
    node_feasible = np.array([inputs.node_feasible[group].any(axis=0) for group in groups], dtype=bool).reshape(
        len(groups), -1
    )
    return inputs._replace(node_free=node_free, node_feasible=node_feasible, node_max=node_max)
