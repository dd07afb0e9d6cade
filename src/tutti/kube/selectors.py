"""Label and node selectors, parsed once into hashable values that match labels.

Contract: a parsed selector is canonical (requirements sorted, values as sets), so equal selectors are equal dictionary
keys. A missing label selector selects nothing (`NOTHING`), an empty label selector selects everything (`EVERYTHING`).
Parsing raises `InputError` for an unknown operator, or for values that do not fit the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from tutti.exceptions import InputError
from tutti.kube.objects import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm

NODE_NAME_FIELD = "metadata.name"


class Requirement(NamedTuple):
    """A condition on the value of one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, value: str | None) -> bool:
        """Whether the label's value (None: the label is absent) meets the condition."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return _compare(self.operator, value, next(iter(self.values)))


def _compare(operator: str, value: str | None, bound: str) -> bool:
    left, right = _integer(value), _integer(bound)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _integer(text: str | None) -> int | None:
    # Go's ParseInt: no spaces, no underscores, 64 bits.
    if text is None or not text.lstrip("+-").isascii() or not text.lstrip("+-").isdigit() or text[1:2] in ("+", "-"):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class Selector(NamedTuple):
    """Requirements that must all hold; `nothing` selects no object at all."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether the selector has no requirement and so selects every object."""
        return not self.requirements and not self.nothing

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that the selector reads."""
        return frozenset(requirement.key for requirement in self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector selects an object with these labels."""
        if self.nothing:
            return False
        return all(requirement.holds(labels.get(requirement.key)) for requirement in self.requirements)

    def with_requirements(self, more: Iterable[Requirement]) -> Selector:
        """Return the selector with more requirements; `NOTHING` stays `NOTHING`."""
        if self.nothing:
            return self
        return Selector(tuple(sorted({*self.requirements, *more}, key=_order)))


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def _order(requirement: Requirement) -> tuple[str, str, list[str]]:
    return requirement.key, requirement.operator, sorted(requirement.values)


def labels_selector(labels: Mapping[str, str]) -> Selector:
    """Return the selector of the objects that have all these labels."""
    return Selector(tuple(sorted((Requirement(k, "In", frozenset((v,))) for k, v in labels.items()), key=_order)))


def parse_label_selector(selector: LabelSelector | None) -> Selector:
    """Parse a label selector of a pod, a budget, a service or a workload."""
    if selector is None:
        return NOTHING
    requirements = [Requirement(k, "In", frozenset((v,))) for k, v in (selector.match_labels or {}).items()]
    requirements += [_label_requirement(r) for r in selector.match_expressions or ()]
    return Selector(tuple(sorted(set(requirements), key=_order)))


def _label_requirement(requirement: LabelSelectorRequirement) -> Requirement:
    values = frozenset(requirement.values or ())
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                raise InputError(f"operator {requirement.operator} of label {requirement.key!r} needs values")
        case "Exists" | "DoesNotExist":
            if values:
                raise InputError(f"operator {requirement.operator} of label {requirement.key!r} takes no values")
        case _:
            raise InputError(f"{requirement.operator!r} is not an operator of a label selector")
    return Requirement(requirement.key, requirement.operator, values)


class NodeTerm(NamedTuple):
    """One term of a node selector: conditions on labels and on the node's name."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    is_invalid: bool = False
    """Whether a requirement of the term is invalid; such a term matches no node, as in kube-scheduler."""

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the term matches a node."""
        if self.is_invalid:
            return False
        return all(r.holds(labels.get(r.key)) for r in self.labels) and all(
            r.holds(name if r.key == NODE_NAME_FIELD else None) for r in self.fields
        )


def parse_node_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """Parse a term; return None for an empty term, which selects nothing."""
    if not term.match_expressions and not term.match_fields:
        return None
    labels = [_node_requirement(r) for r in term.match_expressions or ()]
    fields = [_field_requirement(r) for r in term.match_fields or ()]
    is_invalid = None in labels or None in fields
    return NodeTerm(
        tuple(sorted((r for r in labels if r is not None), key=_order)),
        tuple(sorted((r for r in fields if r is not None), key=_order)),
        is_invalid,
    )


def _node_requirement(requirement: LabelSelectorRequirement) -> Requirement | None:
    values = frozenset(requirement.values or ())
    match requirement.operator:
        case "In" | "NotIn":
            valid = bool(values)
        case "Exists" | "DoesNotExist":
            valid = not values
        case "Gt" | "Lt":
            valid = len(requirement.values or ()) == 1 and _integer(next(iter(values))) is not None
        case _:
            valid = False
    return Requirement(requirement.key, requirement.operator, values) if valid else None


def _field_requirement(requirement: LabelSelectorRequirement) -> Requirement | None:
    if requirement.operator not in ("In", "NotIn") or len(requirement.values or ()) != 1:
        return None
    return Requirement(requirement.key, requirement.operator, frozenset(requirement.values or ()))


def parse_node_selector(selector: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Parse a node selector into its terms, of which one must match; return None if there is no selector."""
    if selector is None:
        return None
    terms = (parse_node_term(term) for term in selector.node_selector_terms or ())
    return tuple(term for term in terms if term is not None)


@lru_cache(maxsize=4096)
def equality_pair(selector: Selector) -> tuple[str, str] | None:
    """Return a label and value that every selected object has, for use as an index key; None if there is none."""
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None
