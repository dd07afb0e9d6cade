"""The policy of sessions by its name, or from a file.

Contract: pure. A file has fields of `engine.session.policy.Policy` in camelCase, as YAML or JSON, and those of
`Patience` and `VictimRules` under ``patience`` and ``victimsAllowed``; absent fields have the defaults of the live
policy. A time of `Patience` is a duration ("90s", "5m") or an integer of microseconds. An unknown field or a value of
the wrong type raises `InputError` with the file and the field.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tutti.engine.config.strict_parsing import FieldPath, parse_document
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.engine.session.policy import OFFLINE, Patience, Policy
from tutti.exceptions import InputError
from tutti.kube.durations import parse_duration
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.sources import Source

POLICIES = {
    "live": Policy(),
    "fifo": Policy(queueing="fifo"),
    "backfill": Policy(queueing="backfill"),
    "reservation": Policy(queueing="reservation"),
    "offline": OFFLINE,
}
"""Policies by name."""


def policy_of(source: Source) -> Policy:
    """Return the policy of a file."""
    path = FieldPath(source.name)
    tree = parse_document(source.data, source.name)
    fields = _fields(tree, Policy, path)
    if isinstance(fields.get("patience"), dict):
        patience = _fields(fields["patience"], Patience, path.at("patience"))
        fields["patience"] = {
            name: _microseconds(value, path.at("patience", _wire_names(Patience)[name]))
            for name, value in patience.items()
        }
    if isinstance(fields.get("victims_allowed"), dict):
        fields["victims_allowed"] = _fields(fields["victims_allowed"], VictimRules, path.at("victimsAllowed"))
    try:
        return msgspec.convert(fields, Policy)
    except msgspec.ValidationError as error:
        found = decode_error(error, source, tree=fields)
        steps = [_camel_case(step) for step in found.field.split(".")]
        raise path.at(*steps).error(found.problem) from None


def _fields(tree: Any, cls: type[msgspec.Struct], path: FieldPath) -> dict[str, Any]:
    """Return the values of a mapping by the names of the struct's fields."""
    if not isinstance(tree, dict):
        raise path.error(f"expected a mapping, got {type(tree).__name__}")
    names = {wire_name: name for name, wire_name in _wire_names(cls).items()}
    for key in tree:
        if key not in names:
            raise path.at(str(key)).error(f"a policy has no such field (want one of {', '.join(names)})")
    return {names[key]: value for key, value in tree.items()}


def _microseconds(value: Any, path: FieldPath) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except InputError as error:
        raise path.error(error.problem) from None


def _wire_names(cls: type[msgspec.Struct]) -> dict[str, str]:
    return {name: _camel_case(name) for name in cls.__struct_fields__}


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
