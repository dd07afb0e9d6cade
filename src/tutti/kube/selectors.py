"""Label and node selectors, parsed once into values that can be compared, hashed and asked.

Contract: a parsed selector is canonical (requirements sorted, values as sets), so equal selectors are equal keys. A
missing label selector selects nothing (`NOTHING`), an empty one everything (`EVERYTHING`). Parsing raises `InputError`
for an operator that Kubernetes does not know or values that do not go with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from tutti.exceptions import InputError
from tutti.kube.objects import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm

NODE_NAME_FIELD = "metadata.name"


class Requirement(NamedTuple):
    """One condition on the value of one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, value: str | None) -> bool:
        """Say whether the label's value (None: no such label) meets the condition."""
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
        """Whether every object is selected because nothing is asked."""
        return not self.requirements and not self.nothing

    @property
    def keys(self) -> frozenset[str]:
        """The labels that the selector looks at."""
        return frozenset(requirement.key for requirement in self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether an object with these labels is selected."""
        if self.nothing:
            return False
        return all(requirement.holds(labels.get(requirement.key)) for requirement in self.requirements)

    def narrowed(self, more: Iterable[Requirement]) -> Selector:
        """Add requirements; what selects nothing still selects nothing."""
        if self.nothing:
            return self
        return Selector(tuple(sorted({*self.requirements, *more}, key=_order)))


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def _order(requirement: Requirement) -> tuple[str, str, list[str]]:
    return requirement.key, requirement.operator, sorted(requirement.values)


def equal_to(labels: Mapping[str, str]) -> Selector:
    """Select the objects that have all these labels."""
    return Selector(tuple(sorted((Requirement(k, "In", frozenset((v,))) for k, v in labels.items()), key=_order)))


def parse_label_selector(selector: LabelSelector | None) -> Selector:
    """Read a label selector of a pod, a budget, a service or a workload."""
    if selector is None:
        return NOTHING
    wanted = [Requirement(k, "In", frozenset((v,))) for k, v in (selector.match_labels or {}).items()]
    wanted += [_label_requirement(r) for r in selector.match_expressions or ()]
    return Selector(tuple(sorted(set(wanted), key=_order)))


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
    broken: bool = False
    """A term that cannot be understood matches no node, as in kube-scheduler."""

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether a node is in the term."""
        if self.broken:
            return False
        return all(r.holds(labels.get(r.key)) for r in self.labels) and all(
            r.holds(name if r.key == NODE_NAME_FIELD else None) for r in self.fields
        )


def parse_node_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """Read one term; an empty one selects nothing and is left out."""
    if not term.match_expressions and not term.match_fields:
        return None
    labels = [_node_requirement(r) for r in term.match_expressions or ()]
    fields = [_field_requirement(r) for r in term.match_fields or ()]
    broken = None in labels or None in fields
    return NodeTerm(
        tuple(sorted((r for r in labels if r is not None), key=_order)),
        tuple(sorted((r for r in fields if r is not None), key=_order)),
        broken,
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
    """Read a node selector into its terms, of which one must hold; None when there is no selector."""
    if selector is None:
        return None
    terms = (parse_node_term(term) for term in selector.node_selector_terms or ())
    return tuple(term for term in terms if term is not None)


@lru_cache(maxsize=4096)
def equality_pair(selector: Selector) -> tuple[str, str] | None:
    """Give a label and value that every selected object has, if there is one: what an index can be keyed by."""
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None
