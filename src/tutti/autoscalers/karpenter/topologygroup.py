"""Spread, affinity and anti-affinity as Karpenter counts them: groups of pods over the values of a node label.

Contract: a `Group` counts the pods that its selector selects in each domain that is decided; it is asked in which
domains the next pod may be. Hosts are counted by number (nodes that are there first, then claims), every other label's
values are bits (`Domains`). A spread names the one domain with the fewest pods, the first by name among equals; host
spread takes the smallest count as 0, because a new node can always be had. An affinity that nobody meets yet lets its
own pods begin anywhere; there, too, the first name is taken where Karpenter takes any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from tutti.autoscalers.karpenter.instancetypes import HOSTNAME, Domains, LabelRows, Shelf, any_term
from tutti.autoscalers.karpenter.preferences import Ask, Kind
from tutti.cluster.counters.pod_terms import PodTerm, Scope
from tutti.kube.objects import Toleration
from tutti.kube.selectors import NodeTerm, Requirement, Selector


class Rule(Enum):
    """What a group asks of its pods."""

    SPREAD = "spread"
    NEAR = "near"
    FAR = "far"


class Filter(NamedTuple):
    """Which nodes a spread counts; without any requirement all."""

    labels: tuple[Requirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    """None where taints do not matter."""


class Words(NamedTuple):
    """What tells one group from another."""

    rule: Rule
    key: str
    scope: Scope
    selector: Selector
    skew: int = 0
    min_domains: int = 1
    filter: Filter = Filter()


class Group:
    """See the module's contract."""

    def __init__(self, words: Words) -> None:
        self.words, self.rule, self.key = words, words.rule, words.key
        self.by_host = words.key == HOSTNAME
        self.known = 0
        self.filled = 0
        self.counts: list[int] = []
        self.hosts: dict[int, int] = {}

    def record(self, bits: int) -> None:
        """Count a pod in every domain of a set."""
        self.known |= bits
        self.filled |= bits
        while bits:
            low = bits & -bits
            self.counts[low.bit_length() - 1] += 1
            bits ^= low

    def record_host(self, host: int) -> None:
        """Count a pod on a host."""
        self.hosts[host] = self.hosts.get(host, 0) + 1

    def takes_host(self, host: int, *, own: bool) -> bool:
        """Whether the next pod may be on a host; `own` says whether the group counts it."""
        count = self.hosts.get(host, 0)
        if self.rule is Rule.SPREAD:
            return count + own <= self.words.skew
        if self.rule is Rule.FAR:
            return count == 0
        return count > 0 or (own and not self.hosts)

    def answer(self, pod: int, node: int, *, own: bool) -> int:
        """The domains for the next pod, of those that the pod (`pod`) and the node (`node`) allow; 0 is none."""
        if self.rule is Rule.FAR:
            return self.known & ~self.filled & pod & node
        if self.rule is Rule.NEAR:
            met = self.filled & pod & node
            if met or not own or self.filled & pod:
                return met
            begin, anywhere = self.known & pod & node, self.known & pod
            return (begin & -begin) | (anywhere & -anywhere)
        return self._fewest(pod, node, own=own)

    def _fewest(self, pod: int, node: int, *, own: bool) -> int:
        counts, places = self.counts, list(_places(self.known & pod))
        least = min((counts[place] for place in places), default=0)
        if len(places) < self.words.min_domains:
            least = 0
        best = min(_places(self.known & node), key=counts.__getitem__, default=None)
        if best is None or counts[best] + own - least > self.words.skew:
            return 0
        return 1 << best


def _places(bits: int) -> Iterable[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


class Running(NamedTuple):
    """Pods that run: how many of which labels are on which node."""

    counts: Mapping[tuple[str, frozenset[tuple[str, str]]], Counter[int]]
    """By namespace and labels, the number on each node."""
    held: Sequence[tuple[PodTerm, int]]
    """Their anti-affinity terms, each with the node where it holds."""


class Topology:
    """All groups of one pass."""

    def __init__(
        self,
        shelves: Sequence[Shelf],
        nodes: LabelRows,
        *,
        running: Running,
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.shelves, self.nodes = shelves, nodes
        self._running, self._namespaces = running, namespaces
        self._groups: dict[Words, Group] = {}
        self._inverse: dict[Words, Group] = {}
        self._domains: dict[str, Domains] = {}
        self._selected: dict[tuple[int, bool], tuple[int, list[Group]]] = {}
        self._owned: dict[int, tuple[list[Group], list[Group]]] = {}
        for term, node in running.held:
            self._count_at(self._far(term), node)

    def domains(self, key: str) -> Domains:
        """The domains of a label."""
        known = self._domains.get(key)
        if known is None:
            known = self._domains[key] = Domains(key, self.shelves, self.nodes)
        return known

    @property
    def keys(self) -> Iterable[str]:
        """The labels that groups look at, hosts aside."""
        return self._domains

    @property
    def widest(self) -> int:
        """How many domains the label with the most of them has, hosts aside."""
        return max((len(each.values) for each in self._domains.values()), default=0)

    def owned(self, ask: Ask) -> tuple[list[Group], list[Group]]:
        """The groups that hold for a step of a ladder, and those that hold for others because of it."""
        known = self._owned.get(id(ask))
        if known is None:
            spec = ask.kind.spec
            groups = [self._group(self._words_of_spread(ask, place)) for place in range(len(ask.wishes.spread))]
            groups += [self._group(_words(Rule.NEAR, term)) for term in ask.near]
            groups += [self._group(_words(Rule.FAR, term)) for term in ask.far]
            known = self._owned[id(ask)] = groups, [self._far(term) for term in spec.anti_affinity]
        return known

    def selecting(self, kind: Kind, *, inverse: bool) -> list[Group]:
        """The groups that count a kind of pods, or those whose pods do not want it near."""
        every = self._inverse if inverse else self._groups
        size, found = self._selected.get((id(kind), inverse), (-1, []))
        if size != len(every):
            found = [group for group in every.values() if self.selects(group, kind)]
            self._selected[id(kind), inverse] = len(every), found
        return found

    def selects(self, group: Group, kind: Kind) -> bool:
        """Whether a group counts a kind of pods."""
        words = group.words
        return self._in_scope(words.scope, kind.namespace) and words.selector.matches(kind.labels)

    def _in_scope(self, scope: Scope, namespace: str) -> bool:
        return scope.holds_known(namespace, self._namespaces.get(namespace))

    def _words_of_spread(self, ask: Ask, place: int) -> Words:
        constraint, spec = ask.wishes.spread[place], ask.kind.spec
        within = Filter(
            labels=spec.node_labels if constraint.honor_affinity else (),
            terms=(ask.wishes.terms or None) if constraint.honor_affinity else None,
            tolerations=ask.tolerations if constraint.honor_taints else None,
        )
        scope = Scope(frozenset((spec.namespace,)))
        return Words(
            Rule.SPREAD, constraint.topology_key, scope, constraint.selector, constraint.max_skew,
            constraint.min_domains, within,
        )  # fmt: skip

    def _group(self, words: Words) -> Group:
        group = self._groups.get(words)
        if group is None:
            group = self._groups[words] = self._made(words)
            admitted = filtered(words.filter, self.nodes)
            for (namespace, labels), where in self._running.counts.items():
                if self._in_scope(words.scope, namespace) and words.selector.matches(dict(labels)):
                    for node, number in where.items():
                        if admitted[node]:
                            for _ in range(number):
                                self._count_at(group, node)
        return group

    def _far(self, term: PodTerm) -> Group:
        words = _words(Rule.FAR, term)
        group = self._inverse.get(words)
        if group is None:
            group = self._inverse[words] = self._made(words)
        return group

    def _made(self, words: Words) -> Group:
        """A group that knows every domain that there is or that could be bought."""
        group = Group(words)
        if group.by_host:
            return group
        domains = self.domains(words.key)
        group.counts = [0] * len(domains.values)
        for number, shelf in enumerate(self.shelves):
            borne = words.filter.tolerations
            if borne is None or shelf.rows.bearable(borne, hard_only=False).any():
                group.known |= domains.of_shelf[number]
        admitted = filtered(words.filter, self.nodes)
        for node, place in enumerate(domains.node_column):
            if place >= 0 and admitted[node]:
                group.known |= 1 << place
        return group

    def _count_at(self, group: Group, node: int) -> None:
        if group.by_host:
            group.record_host(node)
        elif (place := self.domains(group.key).node_column[node]) >= 0:
            group.record(1 << place)


def filtered(words: Filter, rows: LabelRows) -> list[bool]:
    """The rows that a spread counts."""
    mask = rows.within(words.labels)
    if words.terms is not None:
        mask &= any_term(words.terms, rows)
    if words.tolerations is not None:
        mask &= rows.bearable(words.tolerations, hard_only=False)
    found: list[bool] = mask.tolist()
    return found


def _words(rule: Rule, term: PodTerm) -> Words:
    return Words(rule, term.topology_key, term.scope, term.selector)
