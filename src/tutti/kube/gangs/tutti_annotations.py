"""What Tutti adds to every dialect: annotations of a group, or of its pods.

============================ ================================================================================
tutti.dev/min-member         how many members start together, where the dialect does not say
tutti.dev/max-member         how many members run at most
tutti.dev/topology-required  node label whose value all members share
tutti.dev/topology-preferred node labels, the narrowest first, separated by commas
tutti.dev/disruption         single, whole or all (`DisruptionMode`)
tutti.dev/duration           how long the gang runs: 90m, 3600
tutti.dev/sub-groups         JSON: ``[{"name": "master", "minMember": 1, "topology": {"required": "rack"}}]``
============================ ================================================================================

The pod label tutti.dev/sub-group names the part that a pod is in. Annotations of the group's object and of its pods are
read alike; whoever says something must say the same. They add to what the dialect says and never contradict it: that,
and an annotation of this domain that is not in the table, raises `InputError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.durations import duration
from tutti.kube.gangs.dialect import number, waiting_or_running, within
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
KNOWN = frozenset((MIN_MEMBER, MAX_MEMBER, REQUIRED, PREFERRED, DISRUPTION, DURATION, SUB_GROUPS))
"""Every annotation of this domain that is understood."""


class _Near(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    required: str = ""
    preferred: str = ""


class _SubGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    name: str
    min_member: int = 0
    topology: _Near = _Near()


_SUB_GROUPS = msgspec.json.Decoder(list[_SubGroup])


def additions_of(objects: Iterable[Object]) -> dict[str, str]:
    """What a group and its pods say in Tutti's own annotations, by annotation."""
    said: dict[str, tuple[str, Object]] = {}
    for obj in objects:
        annotations = obj.metadata.annotations
        for key in annotations or ():
            if key.startswith(DOMAIN):
                _note(said, key, obj)
    return {key: value for key, (value, _) in said.items()}


def _note(said: dict[str, tuple[str, Object]], key: str, obj: Object) -> None:
    value = (obj.metadata.annotations or {})[key]
    if key not in KNOWN:
        raise InputError(f"annotation {key} ({_called(obj)}) is not understood")
    before, who = said.setdefault(key, (value, obj))
    if before != value:
        raise InputError(f"{key} is said twice: {before} ({_called(who)}) and {value} ({_called(obj)})")


def _called(obj: Object) -> str:
    return obj.metadata.name if isinstance(obj, Pod) else f"{obj.WIRE_KIND} {obj.metadata.name}"


def counted_minimum(members: Sequence[Pod], objects: Sequence[Object] = ()) -> int:
    """The minimum where the dialect knows none: what tutti.dev/min-member says, else all members that count."""
    said = additions_of((*objects, *members)).get(MIN_MEMBER)
    return number(said, MIN_MEMBER, least=1) if said else max(1, len(waiting_or_running(members)))


def with_additions(gang: Gang, said: dict[str, str]) -> Gang:
    """The gang with what Tutti's annotations say."""
    if not said:
        return gang
    if MIN_MEMBER in said:
        _same(number(said[MIN_MEMBER], MIN_MEMBER, least=1), gang.minimum, MIN_MEMBER)
    gang = replace(gang, topology=_topology(gang.topology, said))
    if MAX_MEMBER in said:
        gang = replace(gang, maximum=number(said[MAX_MEMBER], MAX_MEMBER, least=1))
    if DISRUPTION in said:
        gang = replace(gang, disruption=_disruption(said[DISRUPTION], gang))
    if DURATION in said:
        gang = replace(gang, duration=duration(said[DURATION]))
    if SUB_GROUPS in said:
        if gang.parts:
            raise InputError(f"its parts are said twice: in {gang.dialect}'s own words and in {SUB_GROUPS}")
        gang = replace(gang, parts=_parts(said[SUB_GROUPS]))
    return gang


def _same(said: int | str, before: int | str, what: str) -> None:
    if said != before:
        raise InputError(f"{what} {said} contradicts the {before} of its group")


def _topology(topology: GangTopology, said: dict[str, str]) -> GangTopology:
    needed, wanted = said.get(REQUIRED), _keys(said.get(PREFERRED, ""))
    if needed and topology.required:
        _same(needed, topology.required, REQUIRED)
    if wanted and topology.preferred:
        _same(",".join(wanted), ",".join(topology.preferred), PREFERRED)
    return GangTopology(needed or topology.required, wanted or topology.preferred)


def _keys(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key.strip() for key in text.split(",") if key.strip()))


def _disruption(text: str, gang: Gang) -> DisruptionMode:
    try:
        said = DisruptionMode(text)
    except ValueError:
        raise InputError(f'{DISRUPTION} "{text}" is none of single, whole, all') from None
    if gang.disruption is DisruptionMode.ALL:
        _same(said, gang.disruption, DISRUPTION)
    return said


def _parts(text: str) -> tuple[GangPart, ...]:
    try:
        found = _SUB_GROUPS.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{SUB_GROUPS} cannot be read: {error}") from None
    return tuple(
        GangPart(
            name=each.name,
            minimum=within(each.min_member, f"minMember of sub-group {each.name}"),
            topology=GangTopology(each.topology.required or None, _keys(each.topology.preferred)),
        )
        for each in found
    )
