"""Zone layouts: which pods go to which zone, decided before nodes are packed.

Rules over zones (or over any other node label) are applied before nodes are packed: a spread becomes a number of pods
in each zone, pods with affinity to each other get one zone, pods with anti-affinity to each other get one zone each. A
*share* is the part of a class that gets the same zone. Which zones are used is a choice: each layout chooses
differently.

Contract: pure. `zone_layouts` returns the layouts to try, the most promising first; `packing_problem` makes the input
of the solver from a layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Ints
from tutti.recommend.problem.pod_rules import DomainRule, RuleKind
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.draft import Draft


class PodShare(NamedTuple):
    """Some pods of a class, and the node labels that they require."""

    number: int
    """The number of the class."""
    pods: int
    required_labels: tuple[tuple[str, str], ...] = ()
    """Node labels that a node must have to take these pods."""
    bundle: tuple[tuple[int, int], ...] = ()
    """Classes and counts that must all be on one node: the share is then one item instead of `pods` items."""

    @property
    def items(self) -> int:
        """The number of items to pack."""
        return 1 if self.bundle else self.pods

    @property
    def item_pods(self) -> tuple[tuple[int, int], ...]:
        """The pods of one item: classes and counts."""
        return self.bundle or ((self.number, 1),)


class ZoneLayout(NamedTuple):
    """One way to apply the rules over zones."""

    name: str
    shares: tuple[PodShare, ...]
    zones: frozenset[str] | None = None
    """The only zones in which nodes are bought; None stands for all zones."""
    key: str = ""
    """The node label of `zones`."""


def zone_layouts(problem: Problem, demand: Ints, *, hint: Draft | None = None) -> list[ZoneLayout]:
    """Return the layouts to try for a demand; a draft may hint at domains in which gangs can start."""
    gang_labels = gang_domains(problem, hint) if hint is not None else {}
    spreads = [rule for rule in problem.rules.domains if rule.kind is RuleKind.SPREAD and demand[rule.holder]]
    found = [ZoneLayout("all", _LayoutBuilder(problem, demand, None, "", gang_labels).shares())]
    if not spreads:
        return found
    key = spreads[0].key
    values = sorted({value for value in problem.domain(key) if value is not None})
    domains_with_nodes = {value for rule in spreads if rule.key == key for value in rule.counts}
    for value in values:
        zones = frozenset((*domains_with_nodes, value))
        if zones != frozenset(values) and all(rule.min_domains <= max(len(zones), 1) for rule in spreads):
            layout = ZoneLayout(
                f"in {value}", _LayoutBuilder(problem, demand, zones, key, gang_labels).shares(), zones, key
            )
            if not any(layout.zones == other.zones for other in found):
                found.append(layout)
    return found


class _LayoutBuilder:
    """Applies the domain rules one by one, and returns the shares of a layout."""

    def __init__(
        self,
        problem: Problem,
        demand: Ints,
        zones: frozenset[str] | None,
        key: str,
        gang_labels: Mapping[tuple[int, str], str],
    ) -> None:
        self.problem, self.demand, self.zones, self.key = problem, demand, zones, key
        self._gang_labels = gang_labels
        self._domains = {rule.key: problem.domain(rule.key) for rule in problem.rules.domains}
        self._chosen_domains: dict[tuple[int, str], str] = {}
        self._pods_by_domain: dict[tuple[str, bytes], dict[str, int]] = {}

    def shares(self) -> tuple[PodShare, ...]:
        """Return the shares of all classes."""
        self._choose_shared_domains()
        shares: list[PodShare] = []
        for number, count in enumerate(self.demand.tolist()):
            if count:
                shares += self._shares_of_class(number, count)
        return tuple(self._bundle_by_node(shares))

    def _bundle_by_node(self, shares: list[PodShare]) -> Iterable[PodShare]:
        """Merge pods that must share a node with each other into one item, if an empty node can take them all."""
        self_affinity = [(n, matched) for n, matched in self.problem.rules.host.affinity if matched[n]]
        parent = list(range(len(self.demand)))
        for number, matched in self_affinity:
            for other in np.flatnonzero(matched & (self.demand > 0)).tolist():
                parent[_union_root(parent, number)] = _union_root(parent, other)
        shares_by_root: dict[int, list[PodShare]] = {}
        affinity_roots = {_union_root(parent, number) for number, _ in self_affinity}
        for share in shares:
            root = _union_root(parent, share.number)
            if root in affinity_roots:
                shares_by_root.setdefault(root, []).append(share)
            else:
                yield share
        for members in shares_by_root.values():
            bundle = tuple((share.number, share.pods) for share in members)
            if len(members) == len({n for n, _ in bundle}) and self._fits_one_node(bundle):
                required_labels = tuple(dict.fromkeys(label for share in members for label in share.required_labels))
                yield PodShare(members[0].number, sum(count for _, count in bundle), required_labels, bundle)
            else:
                yield from members

    def _fits_one_node(self, bundle: tuple[tuple[int, int], ...]) -> bool:
        """Return whether a new node of some offering takes a whole bundle."""
        numbers = [number for number, _ in bundle]
        requested = sum(count * self.problem.requests[number] for number, count in bundle)
        fitting = (self.problem.free >= requested).all(axis=1) & self.problem.allowed[:, numbers].all(axis=1)
        return bool(fitting.any())

    def _shares_of_class(self, number: int, count: int) -> list[PodShare]:
        """Return the pods of a class, split by the spread and anti-affinity rules of the class."""
        fixed_labels = tuple(
            (key, value) for (holder, key), value in sorted(self._chosen_domains.items()) if holder == number
        )
        shares = [PodShare(number, count, fixed_labels)]
        for rule in self.problem.rules.domains:
            if rule.holder != number or any(rule.key == key for key, _ in fixed_labels):
                continue
            if rule.kind is RuleKind.SPREAD:
                shares = [part for share in shares for part in self._split_by_spread(rule, share)]
            elif rule.kind is RuleKind.ANTI_AFFINITY and rule.matched[number]:
                shares = [part for share in shares for part in self._split_by_anti_affinity(rule, share)]
        return shares

    # Affinity ---------------------------------------------------------------------------------------------------------

    def _choose_shared_domains(self) -> None:
        """Choose a domain for every set of classes that are connected by affinity rules."""
        rules = [
            rule for rule in self.problem.rules.domains if rule.kind is RuleKind.AFFINITY and self.demand[rule.holder]
        ]
        for key in dict.fromkeys(rule.key for rule in rules):
            parent = list(range(len(self.demand)))
            for rule in (rule for rule in rules if rule.key == key):
                for other in np.flatnonzero(rule.matched & (self.demand > 0)).tolist():
                    parent[_union_root(parent, rule.holder)] = _union_root(parent, other)
            holders_by_root: dict[int, list[int]] = {}
            for number in {rule.holder for rule in rules if rule.key == key}:
                holders_by_root.setdefault(_union_root(parent, number), []).append(number)
            for members in holders_by_root.values():
                connected = sorted(
                    {
                        *members,
                        *(n for n in range(len(parent)) if _union_root(parent, n) == _union_root(parent, members[0])),
                    }
                )
                value = self._cheapest_domain(
                    key, connected, [r for r in rules if r.key == key and r.holder in members]
                )
                if value is not None:
                    self._chosen_domains |= {(number, key): value for number in connected if self.demand[number]}

    def _cheapest_domain(self, key: str, members: Sequence[int], rules: Sequence[DomainRule]) -> str | None:
        """Return the domain in which some classes cost least; if matched pods run, only among their domains."""
        for number in members:
            if (number, key) in self._gang_labels:
                return self._gang_labels[number, key]
        domains_with_pods = [set(rule.counts) for rule in rules if rule.counts]
        values = (
            set.intersection(*domains_with_pods)
            if domains_with_pods
            else {value for value in self._domains[key] if value is not None}
        )
        if self.zones is not None and key == self.key and values & self.zones:
            values &= self.zones
        best: tuple[float, str] | None = None
        for value in sorted(values):
            cost = sum(self._estimated_cost(key, value, number) for number in members)
            if best is None or cost < best[0]:
                best = (cost, value)
        return best[1] if best else None

    def _estimated_cost(self, key: str, value: str, number: int) -> float:
        """Estimate the cost of the pods of a class in a domain, by the share of a node that each pod takes."""
        problem = self.problem
        is_inside = np.array([each == value for each in self._domains[key]], dtype=bool) & problem.allowed[:, number]
        if not is_inside.any():
            fits_existing_node = any(
                problem.node_feasible[node, number] and labels.get(key) == value
                for node, labels in enumerate(problem.node_labels)
            )
            return 1e12 if fits_existing_node else 1e15
        prices = np.array(
            [10**9 if offering.price is None else offering.price for offering in problem.offerings], dtype=np.float64
        )
        node_share = (problem.requests[number] / np.maximum(problem.free, 1)).max(axis=1)
        return float((prices * node_share)[is_inside].min() * self.demand[number])

    # Spread and anti-affinity -----------------------------------------------------------------------------------------

    def _usable_domains(self, rule: DomainRule, share: PodShare) -> list[str]:
        """Return the domains in which an offering or an existing node takes the pods of a share."""
        problem, number = self.problem, share.number
        offering_domains = self._domains[rule.key]
        domains = {
            offering_domains[o]
            for o in np.flatnonzero(problem.allowed[:, number]).tolist()
            if has_labels(problem.offerings[o].node.metadata.labels or {}, share.required_labels)
        }
        if self.zones is not None and rule.key == self.key:
            domains &= self.zones
        for node in np.flatnonzero(problem.node_feasible[:, number]).tolist():
            if has_labels(problem.node_labels[node], share.required_labels):
                domains.add(problem.node_labels[node].get(rule.key))
        return sorted(value for value in domains if value is not None)

    def _split_by_spread(self, rule: DomainRule, share: PodShare) -> Iterable[PodShare]:
        """Split a share over the domains of a spread rule; pods that the rule does not allow stay without a domain."""
        counts = self._pods_by_domain.setdefault((rule.key, rule.matched.tobytes()), dict(rule.counts))
        values = self._usable_domains(rule, share)
        for value in values:
            counts.setdefault(value, 0)
        new_pods = dict.fromkeys(values, 0)
        counts_itself = bool(rule.matched[share.number])
        unassigned = share.pods
        while unassigned and values:
            least = min(counts.values()) if len(counts) >= rule.min_domains else 0
            value = min(values, key=lambda each: (counts[each], each))
            if counts[value] + 1 - least > rule.skew:
                break
            new_pods[value] += 1
            counts[value] += counts_itself
            unassigned -= 1
            if not counts_itself:
                new_pods[value] += unassigned
                unassigned = 0
        yield from (
            share._replace(pods=n, required_labels=(*share.required_labels, (rule.key, v)))
            for v, n in new_pods.items()
            if n
        )
        if unassigned:  # more than the rule allows: the engine refuses these pods later
            yield share._replace(pods=unassigned)

    def _split_by_anti_affinity(self, rule: DomainRule, share: PodShare) -> Iterable[PodShare]:
        """Give each pod of a share a domain of its own; pods beyond the free domains stay without a domain."""
        occupied = self._pods_by_domain.setdefault(
            (rule.key, rule.matched.tobytes() + b"anti-affinity"), dict(rule.counts)
        )
        unassigned = share.pods
        for value in self._usable_domains(rule, share):
            if unassigned and not occupied.get(value):
                occupied[value] = 1
                unassigned -= 1
                yield share._replace(pods=1, required_labels=(*share.required_labels, (rule.key, value)))
        if unassigned:
            yield share._replace(pods=unassigned)


def gang_domains(problem: Problem, draft: Draft) -> dict[tuple[int, str], str]:
    """Return the label values where a draft puts gangs whose pods must share a label: by class and label."""
    label_of_class = {
        rule.holder: rule.key
        for rule in problem.rules.domains
        if rule.kind is RuleKind.AFFINITY and problem.classes[rule.holder].gang is not None
    }
    found: dict[tuple[int, str], str] = {}
    if not label_of_class:
        return found
    class_of_pod = problem.class_of_pod
    for draft_node in draft.nodes:
        labels = problem.offerings[draft_node.offering].node.metadata.labels or {}
        for number in {class_of_pod[pod] for pod in draft_node.pods if pod in class_of_pod}:
            if number in label_of_class and label_of_class[number] in labels:
                found[number, label_of_class[number]] = labels[label_of_class[number]]
    return found


def _union_root(parent: list[int], number: int) -> int:
    """Return the root of a number in a union-find forest."""
    while parent[number] != number:
        number = parent[number]
    return number


def has_labels(labels: Mapping[str, str], required_labels: Iterable[tuple[str, str]]) -> bool:
    """Return whether labels include all required labels."""
    return all(labels.get(key) == value for key, value in required_labels)


def guaranteed_shares(problem: Problem, demand: Ints) -> Iterable[PodShare]:
    """Yield shares that every plan has: the least number of pods of a spread in each zone, and the rest without a zone.

    That number is known only when every zone counts: each zone has a node already, or `minDomains` requires all zones.
    """
    rules: dict[int, list[DomainRule]] = {}
    for rule in problem.rules.domains:
        rules.setdefault(rule.holder, []).append(rule)
    for number in np.flatnonzero(demand).tolist():
        unassigned = int(demand[number])
        class_rules = rules.get(number, [])
        if (
            len(class_rules) == 1
            and class_rules[0].kind is RuleKind.SPREAD
            and np.flatnonzero(class_rules[0].matched).tolist() == [number]
        ):
            for value, least in _min_per_domain(problem, class_rules[0], unassigned).items():
                yield PodShare(number, least, ((class_rules[0].key, value),))
                unassigned -= least
        if unassigned:
            yield PodShare(number, unassigned)


def _min_per_domain(problem: Problem, rule: DomainRule, pods: int) -> dict[str, int]:
    """Return the least number of new pods of a spread in each domain; empty when that is not known."""
    offering_domains = problem.domain(rule.key)
    domains = {offering_domains[o] for o in np.flatnonzero(problem.allowed[:, rule.holder]).tolist()} - {None}
    domains |= {
        problem.node_labels[node].get(rule.key)
        for node in np.flatnonzero(problem.node_feasible[:, rule.holder]).tolist()
    } - {None}
    values = {value for value in domains if value is not None} | set(rule.counts)
    if not values or not (values <= set(rule.counts) or rule.min_domains >= len(values)):
        return {}
    counts = {value: rule.counts.get(value, 0) for value in sorted(values)}
    min_pods = {value: _min_in_domain(value, counts, rule.skew, pods) for value in counts}
    return {value: count for value, count in min_pods.items() if count}


def _min_in_domain(value: str, counts: Mapping[str, int], skew: int, pods: int) -> int:
    """Return the fewest new pods of a domain with which the other domains can take the rest within `skew`."""
    count_here, other_counts = counts[value], [count for other, count in counts.items() if other != value]
    new_pods = 0
    while new_pods + sum(max(0, count_here + new_pods + skew - count) for count in other_counts) < pods:
        new_pods += 1
    return new_pods
