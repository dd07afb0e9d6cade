"""The annotations of tutti.dev, on a group object or on its pods, for gangs of any dialect.

============================ ================================================================================
tutti.dev/min-member         how many members start together, if the dialect does not state it
tutti.dev/max-member         the largest number of running members
tutti.dev/topology-required  node label of which all members share one value
tutti.dev/topology-preferred node labels, the narrowest first, separated by commas
tutti.dev/disruption         single, whole or all (`DisruptionMode`)
tutti.dev/duration           how long the gang runs: 90m, 3600
tutti.dev/sub-groups         JSON: ``[{"name": "master", "minMember": 1, "topology": {"required": "rack"}}]``
============================ ================================================================================

The pod label tutti.dev/sub-group names the part that a pod is in. An annotation may be on the group's object, on its
pods, or on both; all values of one annotation must be equal. The annotations complete the fields of the dialect. A
contradiction to the dialect, or an annotation of this domain that is not in the table, raises `InputError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.durations import parse_duration
from tutti.kube.gangs.dialect import checked_count, parse_count, unfinished_pods
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart, GangTopology
from tutti.kube.objects import Object, Pod

DOMAIN = "tutti.dev/"
SUB_GROUP = f"{DOMAIN}sub-group"
MIN_MEMBER = f"{DOMAIN}min-member"
MAX_MEMBER = f"{DOMAIN}max-member"
REQUIRED = f"{DOMAIN}topology-required"
PREFERRED = f"{DOMAIN}topology-preferred"
DISRUPTION = f"{DOMAIN}disruption"
DURATION = f"{DOMAIN}duration"
SUB_GROUPS = f"{DOMAIN}sub-groups"
KNOWN_ANNOTATIONS = frozenset((MIN_MEMBER, MAX_MEMBER, REQUIRED, PREFERRED, DISRUPTION, DURATION, SUB_GROUPS))
"""All supported annotations of this domain."""


class _SubGroupTopology(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    required: str = ""
    preferred: str = ""


class _SubGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    name: str
    min_member: int = 0
    topology: _SubGroupTopology = _SubGroupTopology()


_SUB_GROUPS = msgspec.json.Decoder(list[_SubGroup])


def collect_annotations(objects: Iterable[Object]) -> dict[str, str]:
    """Return the tutti.dev annotations of a group and its pods; raise `InputError` for two different values."""
    collected: dict[str, tuple[str, Object]] = {}
    for obj in objects:
        annotations = obj.metadata.annotations
        for key in annotations or ():
            if key.startswith(DOMAIN):
                _collect(collected, key, obj)
    return {key: value for key, (value, _) in collected.items()}


def _collect(collected: dict[str, tuple[str, Object]], key: str, obj: Object) -> None:
    value = (obj.metadata.annotations or {})[key]
    if key not in KNOWN_ANNOTATIONS:
        raise InputError(f"annotation {key} ({_object_name(obj)}) is not understood")
    first_value, first_obj = collected.setdefault(key, (value, obj))
    if first_value != value:
        values = f"{first_value} ({_object_name(first_obj)}) and {value} ({_object_name(obj)})"
        raise InputError(f"{key} has two values: {values}")


def _object_name(obj: Object) -> str:
    return obj.metadata.name if isinstance(obj, Pod) else f"{obj.WIRE_KIND} {obj.metadata.name}"


def minimum_from_members(members: Sequence[Pod], objects: Sequence[Object] = ()) -> tuple[int, bool]:
    """Return the minimum for a dialect without one, and whether it is only counted.

    This is tutti.dev/min-member, otherwise the number of unfinished pods.
    """
    text = collect_annotations((*objects, *members)).get(MIN_MEMBER)
    if text:
        return parse_count(text, MIN_MEMBER, least=1), False
    return max(1, len(unfinished_pods(members))), True


def with_annotations(gang: Gang, annotations: dict[str, str]) -> Gang:
    """Return the gang completed with its tutti.dev annotations; raise `InputError` for a contradiction."""
    if not annotations:
        return gang
    if MIN_MEMBER in annotations:
        _check_equal(parse_count(annotations[MIN_MEMBER], MIN_MEMBER, least=1), gang.minimum, MIN_MEMBER)
    gang = replace(gang, topology=_topology(gang.topology, annotations))
    if MAX_MEMBER in annotations:
        gang = replace(gang, maximum=parse_count(annotations[MAX_MEMBER], MAX_MEMBER, least=1))
    if DISRUPTION in annotations:
        gang = replace(gang, disruption=_disruption(annotations[DISRUPTION], gang))
    if DURATION in annotations:
        gang = replace(gang, duration=parse_duration(annotations[DURATION]))
    if SUB_GROUPS in annotations:
        if gang.parts:
            raise InputError(f"its parts are declared twice: by {gang.dialect} and by {SUB_GROUPS}")
        gang = replace(gang, parts=_parts(annotations[SUB_GROUPS]))
    return gang


def _check_equal(value: int | str, group_value: int | str, what: str) -> None:
    if value != group_value:
        raise InputError(f"{what} {value} contradicts the {group_value} of its group")


def _topology(topology: GangTopology, annotations: dict[str, str]) -> GangTopology:
    required, preferred = annotations.get(REQUIRED), _keys(annotations.get(PREFERRED, ""))
    if required and topology.required:
        _check_equal(required, topology.required, REQUIRED)
    if preferred and topology.preferred:
        _check_equal(",".join(preferred), ",".join(topology.preferred), PREFERRED)
    return GangTopology(required or topology.required, preferred or topology.preferred)


def _keys(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key.strip() for key in text.split(",") if key.strip()))


def _disruption(text: str, gang: Gang) -> DisruptionMode:
    try:
        mode = DisruptionMode(text)
    except ValueError:
        raise InputError(f'{DISRUPTION} "{text}" is not one of single, whole, all') from None
    if gang.disruption is DisruptionMode.ALL:
        _check_equal(mode, gang.disruption, DISRUPTION)
    return mode


def _parts(text: str) -> tuple[GangPart, ...]:
    try:
        sub_groups = _SUB_GROUPS.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{SUB_GROUPS} cannot be read: {error}") from None
    return tuple(
        GangPart(
            name=each.name,
            minimum=checked_count(each.min_member, f"minMember of sub-group {each.name}"),
            topology=GangTopology(each.topology.required or None, _keys(each.topology.preferred)),
        )
        for each in sub_groups
    )
