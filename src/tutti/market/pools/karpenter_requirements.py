"""Match the requirements of a Karpenter node pool with instance types.

Contract: pure. A requirement on a label that some type has selects among the types (a type without the label meets
``NotIn`` and ``DoesNotExist``). A label that no type has is the pool's own: ``In`` puts it on the node, with one
variant per value; other operators leave the node without it.
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
    """A type and an offer that meet the requirements, with the resulting labels of the node."""

    type: InstanceType
    offer: InstanceOffer
    labels: dict[str, str]
    variant: str
    """The values that distinguish this choice from others of the same type and offer."""


def choices(
    requirements: Iterable[LabelSelectorRequirement], types: Sequence[InstanceType], *, labels: Mapping[str, str]
) -> Iterator[RequirementChoice]:
    """Yield every type and offer that meets the requirements; `labels` are the pool's own."""
    parsed = [_parsed(requirement) for requirement in requirements]
    type_labels = {key for each in types for key in each.labels} | {INSTANCE_TYPE, ZONE, CAPACITY_TYPE}
    variants = list(_variants([each for each in parsed if each.key not in type_labels], labels))
    parsed = [each for each in parsed if each.key in type_labels]
    fixed = {key: value for key, value in labels.items() if key in type_labels}
    for instance_type in types:
        own = instance_type.labels | {INSTANCE_TYPE: instance_type.name}
        for offer in instance_type.offers:
            where = {ZONE: offer.zone} if offer.zone else {}
            node = own | where | {CAPACITY_TYPE: offer.capacity_type}
            if any(node.get(key, value) != value for key, value in fixed.items()):
                continue
            if all(each.holds(node.get(each.key)) for each in parsed):
                for variant in variants:
                    more = "-".join(variant.values()) if len(variants) > 1 else ""
                    yield RequirementChoice(instance_type, offer, {**node, **variant}, more)


def _variants(parsed: Sequence[Requirement], labels: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield every combination of values of the pool's own labels."""
    values: dict[str, list[str]] = {key: [value] for key, value in labels.items()}
    for each in parsed:
        if each.operator == "In":
            values.setdefault(each.key, sorted(each.values))
    keys = [key for key in values if key in {each.key for each in parsed}]
    for row in product(*(values[key] for key in keys)):
        chosen = dict(zip(keys, row, strict=True))
        if all(each.holds(chosen.get(each.key)) for each in parsed if each.key in chosen or each.operator == "In"):
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
