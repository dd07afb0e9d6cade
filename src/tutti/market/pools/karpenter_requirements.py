"""What a Karpenter node pool may buy: its requirements, held against instance types.

Contract: pure. Every label that some type has is known: a requirement on it selects among the types (one that has no
such label meets ``NotIn`` and ``DoesNotExist``). A label that no type has is the pool's own: ``In`` puts it on the
node, one variant for each value; other operators leave the node without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.objects import LabelSelectorRequirement, NodeSelectorTerm
from tutti.kube.selectors import Requirement, parse_node_term
from tutti.market.instance_types import INSTANCE_TYPE, OLD_KEYS, ZONE, InstanceOffer, InstanceType

CAPACITY_TYPE = "karpenter.sh/capacity-type"
_INCLUSIVE = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}


class RequirementChoice(NamedTuple):
    """One thing that meets the requirements, with the labels that its node bears for them."""

    type: InstanceType
    offer: InstanceOffer
    labels: dict[str, str]
    variant: str
    """The values that tell it from other choices of the same type and offer."""


def choices(
    requirements: Iterable[LabelSelectorRequirement], types: Sequence[InstanceType], *, labels: Mapping[str, str]
) -> Iterator[RequirementChoice]:
    """Every type and offer that meets the requirements; `labels` are the pool's own."""
    wanted = [_parsed(requirement) for requirement in requirements]
    known = {key for each in types for key in each.labels} | {INSTANCE_TYPE, ZONE, CAPACITY_TYPE}
    variants = list(_variants([each for each in wanted if each.key not in known], labels))
    wanted = [each for each in wanted if each.key in known]
    fixed = {key: value for key, value in labels.items() if key in known}
    for instance_type in types:
        own = instance_type.labels | {INSTANCE_TYPE: instance_type.name}
        for offer in instance_type.offers:
            where = {ZONE: offer.zone} if offer.zone else {}
            node = own | where | {CAPACITY_TYPE: offer.capacity_type}
            if any(node.get(key, value) != value for key, value in fixed.items()):
                continue
            if all(each.holds(node.get(each.key)) for each in wanted):
                for variant in variants:
                    more = "-".join(variant.values()) if len(variants) > 1 else ""
                    yield RequirementChoice(instance_type, offer, {**node, **variant}, more)


def _variants(wanted: Sequence[Requirement], labels: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The values that the pool's own labels can have together."""
    values: dict[str, list[str]] = {key: [value] for key, value in labels.items()}
    for each in wanted:
        if each.operator == "In":
            values.setdefault(each.key, sorted(each.values))
    keys = [key for key in values if key in {each.key for each in wanted}]
    for row in product(*(values[key] for key in keys)):
        chosen = dict(zip(keys, row, strict=True))
        if all(each.holds(chosen.get(each.key)) for each in wanted if each.key in chosen or each.operator == "In"):
            yield chosen


def _parsed(requirement: LabelSelectorRequirement) -> Requirement:
    key = OLD_KEYS.get(requirement.key, requirement.key)
    values = requirement.values
    operator = requirement.operator
    if operator in _INCLUSIVE and len(values or ()) == 1 and (values or [""])[0].isdigit():
        operator, step = _INCLUSIVE[operator]
        values = [str(int((values or ["0"])[0]) + step)]
    changed = replace(requirement, key=key, operator=operator, values=values)
    term = parse_node_term(NodeSelectorTerm(match_expressions=[changed]))
    if term is None or term.is_invalid:
        given = f" and {len(values or ())} values" if operator in ("Gt", "Lt", "Exists", "DoesNotExist") else ""
        raise InputError(f"a requirement cannot have the operator {operator!r}{given}", field=f"requirements.{key}")
    return term.labels[0]
