"""Pod affinity terms, parsed.

A `PodTerm` holds the namespaces that the term searches, the label selector, and the node label whose values are the
term's domains. Terms are values: equal terms of different pods are equal keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tutti.kube.objects import PodAffinityTerm
from tutti.kube.selectors import NOTHING, Selector, parse_label_selector


class Scope(NamedTuple):
    """The namespaces of a term: the named namespaces, and the namespaces that the selector selects by label."""

    names: frozenset[str]
    selector: Selector = NOTHING

    @property
    def by_labels(self) -> bool:
        """Whether the scope depends on the labels of namespaces."""
        return bool(self.selector.requirements)

    def contains(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Return whether a namespace with these labels is in the scope; None stands for a missing Namespace object."""
        return namespace in self.names or self.selector.matches(labels or {})

    def contains_existing(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Like `contains`, but the selector selects only existing namespaces: for terms of the incoming pod."""
        if namespace in self.names or self.selector.empty:
            return True
        return labels is not None and self.selector.matches(labels)


class PodTerm(NamedTuple):
    """An affinity or anti-affinity term."""

    scope: Scope
    selector: Selector
    topology_key: str


class WeightedTerm(NamedTuple):
    """A preferred term; the weight of an anti-affinity term is negative."""

    weight: int
    term: PodTerm


def parse_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """Parse a term of a pod in a namespace."""
    if not term.namespaces and term.namespace_selector is None:
        scope = Scope(frozenset((namespace,)))
    else:
        scope = Scope(frozenset(term.namespaces or ()), parse_label_selector(term.namespace_selector))
    return PodTerm(scope, parse_label_selector(term.label_selector), term.topology_key)
