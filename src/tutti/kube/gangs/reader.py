"""From pods and group objects to gangs, whatever dialect they are written in.

Contract: all functions are pure and never raise for what an object says; what is missing, contradicts itself or is not
understood becomes one sentence in ``problem``. The order of pods and objects does not matter.

A pod may name one group in several dialects: webhooks of one scheduler write what another one reads. The first dialect
of `DIALECTS` then counts, the more specific ones standing first; the others must not state another size. Different
names contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.gangs.coscheduling import Coscheduling
from tutti.kube.gangs.dialect import Dialect, Find, NoGroupError, least
from tutti.kube.gangs.fluence import Fluence
from tutti.kube.gangs.gang import Gang, GangPart, Membership
from tutti.kube.gangs.kai import Kai
from tutti.kube.gangs.kueue import Kueue
from tutti.kube.gangs.native import Native
from tutti.kube.gangs.native_composite import chain
from tutti.kube.gangs.plain_annotation import PlainAnnotation
from tutti.kube.gangs.tutti_annotations import SUB_GROUP, additions_of, with_additions
from tutti.kube.gangs.volcano import Volcano
from tutti.kube.gangs.yunikorn import YuniKorn
from tutti.kube.objects import (
    CompositePodGroup,
    CoschedulingPodGroup,
    KaiPodGroup,
    Object,
    Pod,
    PodGroup,
    PriorityClass,
    VolcanoPodGroup,
    Workload,
)

GROUP_KINDS: tuple[str, ...] = tuple(
    kind.KIND for kind in (Workload, CompositePodGroup, PodGroup, CoschedulingPodGroup, VolcanoPodGroup, KaiPodGroup)
)
"""Kinds whose objects say something about gangs; a PriorityClass is looked up as well."""
DIALECTS: tuple[Dialect, ...] = (
    Native(), Kai(), Volcano(), YuniKorn(), Kueue(), Fluence(), Coscheduling(), PlainAnnotation(),
)  # fmt: skip
"""Every dialect, the more specific ones first."""

_NATIVE = DIALECTS.index(next(dialect for dialect in DIALECTS if isinstance(dialect, Native)))
_BY_NAME = {dialect.NAME: dialect for dialect in DIALECTS}
_BY_MARK: dict[str, list[int]] = {}
"""Places of the dialects in which a label or an annotation may name a group."""
for _place, _dialect in enumerate(DIALECTS):
    for _mark in _dialect.MARKS:
        _BY_MARK.setdefault(_mark, []).append(_place)
_MARKS = frozenset(_BY_MARK)
_NOTHING: dict[str, str] = {}

_Said = list[tuple[str, Dialect]]
"""The names that a pod gives its group, and in which dialects."""
_Named = tuple[Pod, Membership, _Said]


def membership(pod: Pod) -> Membership | None:
    """Which group a pod names; None for a pod on its own. A pod in no group costs a few set lookups."""
    metadata = pod.metadata
    labels, annotations = metadata.labels, metadata.annotations
    if (
        pod.spec.scheduling_group is None
        and (not annotations or _MARKS.isdisjoint(annotations))
        and (not labels or _MARKS.isdisjoint(labels))
    ):
        return None
    return _membership(pod, _said(pod))


def _said(pod: Pod) -> _Said:
    labels, annotations = pod.metadata.labels or _NOTHING, pod.metadata.annotations or _NOTHING
    places = {place for texts in (labels, annotations) for key in texts if key in _BY_MARK for place in _BY_MARK[key]}
    if pod.spec.scheduling_group is not None:
        places.add(_NATIVE)
    return [
        (name, dialect)
        for dialect in (DIALECTS[place] for place in sorted(places))
        for name in dialect.names(pod, labels, annotations)
    ]


def _membership(pod: Pod, said: _Said) -> Membership | None:
    if not said:
        return None
    name, dialect = said[0]
    problem = None
    for other, its in said:
        if other != name:
            problem = f"it names two groups: {name} ({dialect.NAME}) and {other} ({its.NAME})"
            break
    labels = pod.metadata.labels or _NOTHING
    part, own = dialect.part(labels, pod.metadata.annotations or _NOTHING), labels.get(SUB_GROUP, "")
    if part and own and part != own and problem is None:
        problem = f"it names two parts: {part} ({dialect.NAME}) and {own} ({SUB_GROUP})"
    return Membership(dialect.NAME, f"{pod.metadata.namespace or 'default'}/{name}", part or own, _one_line(problem))


def root(group: str, find: Find) -> str:
    """The key of the gang to which a named group belongs: that of the composite group above all, or its own."""
    return chain(group, find)[-1]


def part_of(membership: Membership, root: str) -> str:
    """The part of a gang that a pod is in: the group it names if that is itself a part, else what it says."""
    if membership.group != root:
        return membership.group.partition("/")[2]
    return membership.part


def read_gang(key: str, members: Sequence[Pod], find: Find) -> Gang:
    """The record of a gang, from all pods that name it or a group under it."""
    members = sorted(members, key=lambda pod: pod.key)
    named = _named(members)
    gang = Gang(key=key, dialect=named[0][1].dialect if named else "", minimum=max(1, len(members)))
    try:
        if not named:
            raise InputError("no pod names it")
        dialect = _dialect_of(named)
        gang = replace(gang, disruption=dialect.DISRUPTION)
        gang = dialect.read(key, members, find)
        gang = with_additions(gang, additions_of((*dialect.objects(key, find), *members)))
        _check_sizes(gang, named, find)
        _check_parts(gang, named)
        gang = replace(gang, minimum=least(gang.minimum, gang.parts, gang.parts_needed))
        if gang.maximum is not None and gang.maximum < gang.minimum:
            raise InputError(f"its maximum {gang.maximum} is less than its minimum {gang.minimum}")
    except InputError as error:
        gang = replace(gang, problem=_one_line(error.problem))
    return gang


def _named(members: Iterable[Pod]) -> list[_Named]:
    """What pods say of their group; those that say the same in the same words are looked at once."""
    known: dict[tuple[object, ...], tuple[Membership | None, _Said]] = {}
    named = []
    for pod in members:
        labels, annotations = pod.metadata.labels or _NOTHING, pod.metadata.annotations or _NOTHING
        group = pod.spec.scheduling_group
        words = (pod.metadata.namespace, group, tuple(labels.items()), tuple(annotations.items()))
        found = known.get(words)
        if found is None:
            said = _said(pod)
            found = known[words] = _membership(pod, said), said
        if found[0] is not None:
            named.append((pod, found[0], found[1]))
    return named


def read_gangs(objects: Iterable[Object]) -> dict[str, Gang]:
    """All gangs that pods among the objects name, by key and in its order."""
    known: dict[tuple[str, str], Object] = {}
    pods: list[tuple[Pod, Membership]] = []
    for obj in objects:
        if isinstance(obj, Pod):
            named = membership(obj)
            if named is not None:
                pods.append((obj, named))
        elif obj.KIND in GROUP_KINDS or isinstance(obj, PriorityClass):
            known[obj.KIND, obj.key] = obj

    def find(kind: str, key: str) -> Object | None:
        return known.get((kind, key))

    members: dict[str, list[Pod]] = {}
    for pod, named in pods:
        members.setdefault(root(named.group, find), []).append(pod)
    return {key: read_gang(key, members[key], find) for key in sorted(members)}


def _dialect_of(named: Sequence[_Named]) -> Dialect:
    """The one dialect in which all members name their group."""
    first, its, _ = named[0]
    for pod, says, _ in named:
        if says.problem is not None:
            raise InputError(f"pod {pod.metadata.name} contradicts itself: {says.problem}")
        if says.dialect != its.dialect:
            ways = f"{its.dialect} ({first.metadata.name}) and {says.dialect} ({pod.metadata.name})"
            raise InputError(f"its pods name it in two dialects: {ways}")
    return _BY_NAME[its.dialect]


def _check_sizes(gang: Gang, named: Sequence[_Named], find: Find) -> None:
    """Refuse a size that another dialect states of the same group, if it is a different one."""
    speakers: dict[Dialect, list[Pod]] = {}
    for pod, says, said in named:
        if says.group == gang.key:
            for _, dialect in said:
                if says.dialect != dialect.NAME and dialect.STATES_SIZE:
                    speakers.setdefault(dialect, []).append(pod)
    for dialect, pods in speakers.items():
        try:
            other = dialect.read(gang.key, pods, find)
        except NoGroupError:
            continue  # it only borrows the name
        if other.minimum not in (1, gang.minimum):  # 1 is what a group has that says nothing
            sizes = f"{gang.minimum} ({gang.dialect}) and {other.minimum} ({dialect.NAME})"
            raise InputError(f"it has two sizes: {sizes}")


def _check_parts(gang: Gang, named: Sequence[_Named]) -> None:
    """Refuse two parts of one name, and pods in parts that a gang with parts does not have."""
    if not gang.parts:
        return
    names = _part_names(gang.parts)
    known = frozenset(names)
    if "" in known:
        raise InputError("it has a part without a name")
    if len(known) < len(names):
        twice = min(name for name in names if names.count(name) > 1)
        raise InputError(f"it has two parts of the name {twice}")
    for pod, says, _ in named:
        part = part_of(says, gang.key)
        if part and part not in known:
            raise InputError(f'pod {pod.metadata.name} is in part "{part}", which the group does not have')
        if says.part not in ("", part):
            raise InputError(f"pod {pod.metadata.name} is in two parts: {part} and {says.part}")


def _part_names(parts: Iterable[GangPart]) -> list[str]:
    return [name for part in parts for name in (part.name, *_part_names(part.parts))]


def _one_line(problem: str | None) -> str | None:
    return None if problem is None else " ".join(problem.split())
