"""Pods as Karpenter reads them: what they ask for at first, and what is left when wishes are dropped one by one.

Contract: pods that cannot be told apart are one `Kind`. A kind has a ladder of `Ask`s. On its first step every wish is
a demand; each further step has one wish less, in Karpenter's order: all but the last of several required node terms,
wished-for pod affinity, wished-for anti-affinity, wished-for node terms, spreads that may be violated, and last the
taints that only ask pods to stay away. Steps are made when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.autoscalers.karpenter.instancetypes import LabelRows, Port, Shelf
from tutti.autoscalers.karpenter.state import ProvisionablePod
from tutti.cluster.columns import Bools, Ints
from tutti.cluster.counters.pod_terms import PodTerm
from tutti.cluster.spec_classes import SpecClass, SpreadConstraint
from tutti.kube.objects import Pod, Toleration
from tutti.kube.selectors import NodeTerm, Requirement, equal_to

_BEARS_WISHES = Toleration(operator="Exists", effect="PreferNoSchedule")


class _Wishes(NamedTuple):
    """What of a spec still stands."""

    terms: tuple[NodeTerm, ...]
    near: tuple[PodTerm, ...]
    far: tuple[PodTerm, ...]
    nodes: tuple[NodeTerm, ...]
    spread: tuple[SpreadConstraint, ...]
    bears: bool = False
    """Whether taints that ask to stay away are borne."""


class Ask:
    """One step of a ladder: what must hold for the pods."""

    def __init__(self, kind: Kind, wishes: _Wishes) -> None:
        spec = kind.spec
        self.kind, self.wishes = kind, wishes
        self.tolerations = (*spec.tolerations, *((_BEARS_WISHES,) if wishes.bears else ()))
        self.strict = (*spec.node_labels, *(wishes.terms[0].labels if wishes.terms else ()))
        self.wanted = (*self.strict, *(wishes.nodes[0].labels if wishes.nodes else ()))
        self.fields = wishes.terms[0].fields if wishes.terms else ()
        """Requirements on the node's name, which no node to come meets."""
        self.hopeless = any(term.broken for term in (*wishes.terms[:1], *wishes.nodes[:1]))
        self.near = (*spec.affinity, *wishes.near)
        self.far = (*spec.anti_affinity, *wishes.far)
        self.closed: set[int] = set()
        """Claims that can take no pod of this step any more."""
        self.on_shelf: dict[int, Bools] = {}
        """The offerings of each shelf that would do, whatever else is on the node."""
        self.nodes: Ints | None = None
        """The nodes that could still take one; None before they were looked for."""

    def asked_of(self, key: str, *, strict: bool) -> list[Requirement]:
        """The requirements on one label."""
        return [each for each in (self.strict if strict else self.wanted) if each.key == key]

    def shelf_mask(self, number: int, shelf: Shelf) -> Bools:
        """The offerings of a shelf whose labels, taints and daemons let the pods in."""
        known = self.on_shelf.get(number)
        if known is None:
            if self.hopeless or self.fields:
                known = np.zeros(len(shelf.offerings), dtype=bool)
            else:
                known = shelf.rows.within(self.wanted) & shelf.rows.bearable(self.tolerations, hard_only=False)
                known &= shelf.without_clash(self.kind.spec.ports)
            self.on_shelf[number] = known
        return known

    def node_mask(self, rows: LabelRows, names: Sequence[str]) -> Bools:
        """The nodes whose labels and taints let the pods in."""
        if self.hopeless:
            return np.zeros(rows.count, dtype=bool)
        mask = rows.within(self.wanted) & rows.bearable(self.tolerations, hard_only=False)
        if self.fields:
            mask &= np.fromiter((all(each.holds(name) for each in self.fields) for name in names), bool, rows.count)
        return mask


class Kind:
    """Pods that cannot be told apart."""

    def __init__(self, spec: SpecClass, labels: Mapping[str, str], resources: Sequence[str]) -> None:
        self.spec, self.labels, self.namespace = spec, labels, spec.namespace
        needs = [(place, spec.requests.get(name, 0)) for place, name in enumerate(resources)]
        self.needs: list[tuple[int, int]] = [(place, amount) for place, amount in needs if amount > 0]
        self.column: Ints = np.array([amount for _, amount in needs], dtype=np.int64)[:, None]
        preferred = sorted(spec.preferred_nodes, key=lambda each: -each[0])
        first = _Wishes(
            terms=spec.node_terms or (),
            near=_heaviest_first(spec, 1),
            far=_heaviest_first(spec, -1),
            nodes=tuple(term for _, term in preferred),
            spread=tuple(_own(each, labels) for each in spec.spread),
        )
        self.ladder = [Ask(self, first)]
        if spec.node_terms == ():  # terms were asked for, and none can be met
            self.ladder[0].hopeless = True
        self.failed_at = -1
        """When the last try to place one failed."""

    def step(self, number: int, *, some_prefer: bool) -> Ask | None:
        """A step of the ladder; None when there is no such step."""
        while len(self.ladder) <= number:
            fewer = _relaxed(self.ladder[-1].wishes, some_prefer=some_prefer)
            if fewer is None:
                return None
            self.ladder.append(Ask(self, fewer))
        return self.ladder[number]

    @property
    def ports(self) -> tuple[Port, ...]:
        """The host ports that a pod takes."""
        return self.spec.ports


def _relaxed(wishes: _Wishes, *, some_prefer: bool) -> _Wishes | None:
    """The wishes without the next one to go."""
    if len(wishes.terms) > 1:
        return wishes._replace(terms=wishes.terms[1:])
    for field in ("near", "far", "nodes"):
        if held := getattr(wishes, field):
            return wishes._replace(**{field: held[1:]})
    soft = next((each for each in wishes.spread if not each.hard), None)
    if soft is not None:
        return wishes._replace(spread=tuple(each for each in wishes.spread if each is not soft))
    if some_prefer and not wishes.bears:
        return wishes._replace(bears=True)
    return None


def _heaviest_first(spec: SpecClass, sign: int) -> tuple[PodTerm, ...]:
    mine = [each for each in spec.preferred_pods if each.weight * sign > 0]
    return tuple(each.term for each in sorted(mine, key=lambda each: -abs(each.weight)))


def _own(constraint: SpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    """A constraint with the values of its label keys in its selector."""
    extra = {key: labels[key] for key in constraint.extra_keys if key in labels}
    if not extra:
        return constraint
    return constraint._replace(selector=constraint.selector.narrowed(equal_to(extra).requirements))


class Sorting:
    """The waiting pods by kind."""

    def __init__(self, pods: Sequence[ProvisionablePod], watched: Iterable[str]) -> None:
        specs = {each.spec.number: each.spec for each in pods}.values()
        self.watched = frozenset(watched).union(*(each.watched_keys for each in specs))
        """The pod labels that some selector looks at."""
        self.resources = sorted({name for each in specs for name in each.requests} | {"cpu", "memory", "pods"})
        kinds: dict[tuple[int, frozenset[tuple[str, str]]], Kind] = {}
        self.kinds: list[Kind] = []
        """The kind of each pod."""
        for pod, spec in pods:
            labels = self.seen(pod)
            kind = kinds.get((spec.number, labels))
            if kind is None:
                kind = kinds[spec.number, labels] = Kind(spec, dict(labels), self.resources)
            self.kinds.append(kind)
        self.all = list(kinds.values())

    def seen(self, pod: Pod) -> frozenset[tuple[str, str]]:
        """The labels of a pod that some selector looks at."""
        labels = pod.metadata.labels
        if not labels:
            return frozenset()
        return frozenset((key, labels[key]) for key in self.watched & labels.keys())


def queue_order(pods: Sequence[Pod], kinds: Sequence[Kind]) -> list[int]:
    """Karpenter's queue: much cpu first, then much memory, then the oldest."""

    def order(place: int) -> tuple[int, int, str, str]:
        requests, metadata = kinds[place].spec.requests, pods[place].metadata
        created, uid = metadata.creation_timestamp or "", metadata.uid or ""
        return -requests.get("cpu", 0), -requests.get("memory", 0), created, uid

    return sorted(range(len(pods)), key=order)
