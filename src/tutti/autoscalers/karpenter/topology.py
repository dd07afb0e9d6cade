"""What the groups of Karpenter's model leave of a place, and how a placed pod is counted in them.

Contract: a place is a host (nodes by number, then claims) with a set of values for each label that groups look at.
`narrowed` says what a step of a ladder leaves of these sets; `record` counts a pod that was placed. Only domains that
are decided count, except for anti-affinity, which counts every domain that the pod could end in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.autoscalers.karpenter.instancetypes import Shelf
from tutti.autoscalers.karpenter.nodeclaim import Claim, Nodes
from tutti.autoscalers.karpenter.preferences import Ask
from tutti.autoscalers.karpenter.topologygroup import Filter, Group, Rule, Topology, filtered
from tutti.cluster.columns import Bools

_ALL = Filter()
_Heeded = list[tuple[Group, bool]]
"""Groups, each with whether it counts the pod itself."""


class Rules(NamedTuple):
    """The groups that one step of a ladder has to heed."""

    hosts: _Heeded
    domains: list[tuple[str, _Heeded]]
    """By label."""

    def take_host(self, host: int) -> bool:
        """Whether the pod may be on a host, as far as other pods there go."""
        return all(group.takes_host(host, own=own) for group, own in self.hosts)

    def is_full(self, host: int) -> bool:
        """Whether a host can take no such pod any more: counts only grow, so only an affinity may be met later."""
        return any(not group.takes_host(host, own=own) for group, own in self.hosts if group.rule is not Rule.NEAR)


class RuleBook:
    """See the module's contract."""

    def __init__(self, topology: Topology, shelves: Sequence[Shelf], nodes: Nodes) -> None:
        self.topology, self.shelves, self.nodes = topology, shelves, nodes
        self._rules: dict[int, tuple[int, Rules]] = {}
        self._bits: dict[tuple[int, str, bool], int] = {}
        self._filters: dict[tuple[Filter, int], Bools] = {}

    def of(self, ask: Ask) -> Rules:
        """The rules of one step of a ladder."""
        topology, kind = self.topology, ask.kind
        owned, _ = topology.owned(ask)
        shy = topology.selecting(kind, inverse=True)
        size, rules = self._rules.get(id(ask), (-1, Rules([], [])))
        if size == len(shy):
            return rules
        heeded = [(group, topology.selects(group, kind)) for group in owned] + [(group, True) for group in shy]
        domains: dict[str, _Heeded] = {}
        for group, own in heeded:
            if not group.by_host:
                domains.setdefault(group.key, []).append((group, own))
        rules = Rules([each for each in heeded if each[0].by_host], list(domains.items()))
        self._rules[id(ask)] = len(shy), rules
        return rules

    def narrowed(self, ask: Ask, rules: Rules, had: Sequence[int]) -> list[int] | None:
        """The domains that the groups leave of those that a place has, for each label; None where none is left."""
        found = []
        for (key, groups), place in zip(rules.domains, had, strict=True):
            pod, node = self._asked(ask, key, strict=True), place & self._asked(ask, key, strict=False)
            left = node
            for group, own in groups:
                left &= group.answer(pod, node, own=own)
            if not left:
                return None
            found.append(left)
        return found

    def begin(self, claim: Claim) -> None:
        """Note what is decided for a new claim by its pool."""
        for key in self.topology.keys:
            only = self.of_shelf(key, claim.shelf)
            if only & (only - 1) == 0:
                claim.bits[key] = only

    def settle(self, claim: Claim, ask: Ask, *, rules: Rules, narrowed: Sequence[int]) -> None:
        """Note what a claim has become with its last pod, and count the pod."""
        for key in self.topology.keys:
            if (asked := self._asked(ask, key, strict=False)) != -1:
                claim.bits[key] = claim.bits.get(key, self.of_shelf(key, claim.shelf)) & asked
        for (key, _), allowed in zip(rules.domains, narrowed, strict=True):
            claim.bits[key] = allowed
        self._record(ask, host=claim.host, bits=claim.bits, claim=claim)

    def settle_on_node(self, node: int, ask: Ask) -> None:
        """Count a pod on a node that is there."""
        self._record(ask, host=node, bits={key: self.of_node(key, node) for key in self.topology.keys})

    def _record(self, ask: Ask, *, host: int, bits: Mapping[str, int], claim: Claim | None = None) -> None:
        for group in self.topology.selecting(ask.kind, inverse=False):
            if group.words.filter != _ALL and not self._counts(group.words.filter, host, claim):
                continue
            allowed = bits.get(group.key, 0)
            if group.by_host:
                group.record_host(host)
            elif group.rule is Rule.FAR or allowed & (allowed - 1) == 0:
                group.record(allowed)
        for group in self.topology.owned(ask)[1]:
            if group.by_host:
                group.record_host(host)
            else:
                group.record(bits.get(group.key, 0))

    def _counts(self, words: Filter, host: int, claim: Claim | None) -> bool:
        """Whether a spread counts the pods of a place."""
        table = -1 if claim is None else claim.shelf
        mask = self._filters.get((words, table))
        if mask is None:
            rows = self.nodes.rows if claim is None else self.shelves[claim.shelf].rows
            mask = self._filters[words, table] = np.array(filtered(words, rows), dtype=bool)
        return bool(mask[host] if claim is None else mask[claim.rows].any())

    def of_shelf(self, key: str, shelf: int) -> int:
        """The values that the offerings of a shelf have."""
        return self.topology.domains(key).of_shelf[shelf]

    def of_node(self, key: str, node: int) -> int:
        """The value that a node has."""
        place = self.topology.domains(key).node_column[node]
        return 1 << place if place >= 0 else 0

    def _asked(self, ask: Ask, key: str, *, strict: bool) -> int:
        known = self._bits.get((id(ask), key, strict))
        if known is None:
            wanted = ask.asked_of(key, strict=strict)
            known = self._bits[id(ask), key, strict] = self.topology.domains(key).meeting(wanted)
        return known
