"""The domains of one node label: its values over all templates and existing nodes, as bits of an integer.

Contract: domains are numbered in the order of their names. A set of domains is one integer, whose lowest bit is the
first domain by name.
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
        self._number_of = {name: number for number, name in enumerate(self.values)}
        columns = [self._column(table, key) for table in tables]
        self._columns, self.node_column = columns[:-1], columns[-1].tolist()
        """By row: the number of its domain, or -1 if the row has no such label."""
        self.of_template = [self.bits(np.unique(column[column >= 0]).tolist()) for column in self._columns]
        """By template: the set of its domains."""
        self._masks: dict[tuple[int, int], Bools] = {}

    def _column(self, table: LabelRows, key: str) -> Ints:
        number_of = self._number_of
        numbers = (number_of[each[key]] if key in each else -1 for each in table.labels)
        return np.fromiter(numbers, np.int64, table.count)

    @staticmethod
    def bits(numbers: Iterable[int]) -> int:
        """Return the set of some domains, given by number."""
        return sum(1 << number for number in numbers)

    def meeting(self, requirements: Iterable[Requirement]) -> int:
        """Return the set of domains that meet all requirements; -1, the set of all, when there is no requirement."""
        listed = list(requirements)
        if not listed:
            return -1
        return self.bits(number for number, name in enumerate(self.values) if all(each.holds(name) for each in listed))

    def mask(self, template: int, bits: int) -> Bools:
        """Return the rows of a template whose domain is in a set."""
        known = self._masks.get((template, bits))
        if known is None:
            # The last item is for rows with domain -1.
            is_member = np.array([*(bool(bits >> number & 1) for number in range(len(self.values))), False])
            known = self._masks[template, bits] = is_member[self._columns[template]]
        return known
