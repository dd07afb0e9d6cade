"""The domains of one node label: its values over all templates and existing nodes, as bits of an integer.

Contract: bits are in the order of the values' names, so a set of zones is one number, and its lowest bit is the first
zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tutti.autoscalers.karpenter.label_rows import LabelRows
from tutti.autoscalers.karpenter.nodeclaimtemplate import NodeClaimTemplate
from tutti.cluster.columns import Bools, Ints
from tutti.kube.selectors import Requirement


class TopologyDomainGroup:
    """See the module's contract."""

    def __init__(self, key: str, templates: Sequence[NodeClaimTemplate], nodes: LabelRows) -> None:
        tables = [*(template.rows for template in templates), nodes]
        self.values = sorted({each[key] for table in tables for each in table.labels if key in each})
        self._bit_of = {name: place for place, name in enumerate(self.values)}
        columns = [self._column(table, key) for table in tables]
        self._columns, self.node_column = columns[:-1], columns[-1].tolist()
        """The number of each row's value, or -1."""
        self.of_template = [self.bits(np.unique(column[column >= 0]).tolist()) for column in self._columns]
        """The set of values that each template has."""
        self._masks: dict[tuple[int, int], Bools] = {}

    def _column(self, table: LabelRows, key: str) -> Ints:
        bit_of = self._bit_of
        return np.fromiter((bit_of[each[key]] if key in each else -1 for each in table.labels), np.int64, table.count)

    @staticmethod
    def bits(places: Iterable[int]) -> int:
        """The set of some values, by number."""
        return sum(1 << place for place in places)

    def meeting(self, requirements: Iterable[Requirement]) -> int:
        """The set of values that meet all requirements; -1, every value, when there is no requirement."""
        wanted = list(requirements)
        if not wanted:
            return -1
        return self.bits(place for place, name in enumerate(self.values) if all(each.holds(name) for each in wanted))

    def mask(self, template: int, bits: int) -> Bools:
        """The rows of a template whose value is in a set."""
        known = self._masks.get((template, bits))
        if known is None:
            inside = np.array([*(bool(bits >> place & 1) for place in range(len(self.values))), False])
            known = self._masks[template, bits] = inside[self._columns[template]]
        return known
