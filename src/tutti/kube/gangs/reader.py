"""Reading of gangs from pods and group objects, in all dialects.

Contract: all functions are pure and never raise for the content of an object. A missing object, a contradiction or an
unsupported field becomes one sentence in ``problem``. The order of pods and objects does not matter.

A pod may name its group in several dialects, because a webhook of one scheduler may write the labels of another
scheduler. The first dialect in `DIALECTS` then applies; the other dialects must not state another size. Two different
group names are a contradiction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.gangs.coscheduling import Coscheduling
from tutti.kube.gangs.dialect import Dialect, Find, NoGroupError, least_pods
from tutti.kube.gangs.fluence import Fluence
from tutti.kube.gangs.gang import Gang, GangPart, Membership
from tutti.kube.gangs.kai import Kai
from tutti.kube.gangs.kueue import Kueue
from tutti.kube.gangs.native import Native
from tutti.kube.gangs.native_composite import ancestor_chain
from tutti.kube.gangs.plain_annotation import PlainAnnotation
from tutti.kube.gangs.tutti_annotations import SUB_GROUP, collect_annotations, with_annotations
from tutti.kube.gangs.volcano import Volcano
from tutti.kube.gangs.yunikorn import YuniKorn
from tutti.kube.objects import (
    CompositePodGroup,
    CoschedulingPodGroup,
    KaiPodGroup,
    Object,
    Pod,
    PodGroup,
    VolcanoPodGroup,
    Workload,
)

GROUP_KINDS: tuple[str, ...] = tuple(
    kind.KIND for kind in (Workload, CompositePodGroup, PodGroup, CoschedulingPodGroup, VolcanoPodGroup, KaiPodGroup)
)
"""Kinds of group objects."""
DIALECTS: tuple[Dialect, ...] = (
    Native(), Kai(), Volcano(), YuniKorn(), Kueue(), Fluence(), Coscheduling(), PlainAnnotation(),
)  # fmt: skip
"""Every dialect, the more specific ones first."""

_NATIVE = DIALECTS.index(next(dialect for dialect in DIALECTS if isinstance(dialect, Native)))
_BY_NAME = {dialect.NAME: dialect for dialect in DIALECTS}
_DIALECTS_BY_KEY: dict[str, list[int]] = {}
"""Indexes in `DIALECTS` by label or annotation key."""
for _index, _dialect in enumerate(DIALECTS):
    for _key in _dialect.GROUP_KEYS:
        _DIALECTS_BY_KEY.setdefault(_key, []).append(_index)
_GROUP_KEYS = frozenset(_DIALECTS_BY_KEY)
_NOTHING: dict[str, str] = {}

_NamedGroups = list[tuple[str, Dialect]]
"""The group names of a pod, each with its dialect."""
_Member = tuple[Pod, Membership, _NamedGroups]


def membership(pod: Pod) -> Membership | None:
    """Return the group that a pod names; None for a pod without a group, at the cost of a few set lookups."""
    metadata = pod.metadata
    labels, annotations = metadata.labels, metadata.annotations
    if (
        pod.spec.scheduling_group is None
        and (not annotations or _GROUP_KEYS.isdisjoint(annotations))
        and (not labels or _GROUP_KEYS.isdisjoint(labels))
    ):
        return None
    return _membership(pod, _named_groups(pod))


def _named_groups(pod: Pod) -> _NamedGroups:
    labels, annotations = pod.metadata.labels or _NOTHING, pod.metadata.annotations or _NOTHING
    places = {
        place
        for texts in (labels, annotations)
        for key in texts
        if key in _DIALECTS_BY_KEY
        for place in _DIALECTS_BY_KEY[key]
    }
    if pod.spec.scheduling_group is not None:
        places.add(_NATIVE)
    return [
        (name, dialect)
        for dialect in (DIALECTS[place] for place in sorted(places))
        for name in dialect.group_names(pod, labels, annotations)
    ]


def _membership(pod: Pod, named_groups: _NamedGroups) -> Membership | None:
    if not named_groups:
        return None
    name, dialect = named_groups[0]
    problem = None
    for other_name, other_dialect in named_groups:
        if other_name != name:
            problem = f"it names two groups: {name} ({dialect.NAME}) and {other_name} ({other_dialect.NAME})"
            break
    labels = pod.metadata.labels or _NOTHING
    part, sub_group = dialect.part_name(labels, pod.metadata.annotations or _NOTHING), labels.get(SUB_GROUP, "")
    if part and sub_group and part != sub_group and problem is None:
        problem = f"it names two parts: {part} ({dialect.NAME}) and {sub_group} ({SUB_GROUP})"
    group = f"{pod.metadata.namespace or 'default'}/{name}"
    return Membership(dialect.NAME, group, part or sub_group, _one_line(problem))


def root_group(group: str, find: Find) -> str:
    """Return the key of the gang of a group: the key of its topmost composite group, or its own key."""
    return ancestor_chain(group, find)[-1]


def part_of(membership: Membership, root: str) -> str:
    """Return the part of a gang that a pod is in: the pod's group if it is below the root, otherwise its named part."""
    if membership.group != root:
        return membership.group.partition("/")[2]
    return membership.part


def read_gang(key: str, members: Sequence[Pod], find: Find) -> Gang:
    """Read a gang from all pods that name it or a group below it."""
    deleted: list[Object] = []

    def find_group(kind: str, name: str) -> Object | None:
        obj = find(kind, name)
        if obj is not None and kind in GROUP_KINDS and obj.metadata.deletion_timestamp is not None:
            deleted.append(obj)
        return obj

    gang = _read_gang(key, members, find_group)
    return replace(gang, is_being_deleted=True) if deleted else gang


def _read_gang(key: str, members: Sequence[Pod], find: Find) -> Gang:
    pods = sorted(members, key=lambda pod: pod.key)
    memberships = _memberships(pods)
    gang = Gang(key=key, dialect=memberships[0][1].dialect if memberships else "", minimum=max(1, len(pods)))
    try:
        if not memberships:
            raise InputError("no pod names it")
        dialect = _dialect_of(memberships)
        gang = replace(gang, disruption=dialect.DISRUPTION)
        gang = dialect.read(key, pods, find)
        gang = with_annotations(gang, collect_annotations((*dialect.group_objects(key, find), *pods)))
        _check_sizes(gang, memberships, find)
        _check_parts(gang, memberships)
        gang = replace(gang, minimum=least_pods(gang.minimum, gang.parts, gang.parts_needed))
        if gang.maximum is not None and gang.maximum < gang.minimum:
            raise InputError(f"its maximum {gang.maximum} is less than its minimum {gang.minimum}")
    except InputError as error:
        gang = replace(gang, problem=_one_line(error.problem))
    return gang


def _memberships(pods: Iterable[Pod]) -> list[_Member]:
    """Return the pods with a membership; pods with equal labels and annotations are evaluated once."""
    known: dict[tuple[object, ...], tuple[Membership | None, _NamedGroups]] = {}
    members = []
    for pod in pods:
        labels, annotations = pod.metadata.labels or _NOTHING, pod.metadata.annotations or _NOTHING
        group = pod.spec.scheduling_group
        key = (pod.metadata.namespace, group, tuple(labels.items()), tuple(annotations.items()))
        result = known.get(key)
        if result is None:
            named_groups = _named_groups(pod)
            result = known[key] = _membership(pod, named_groups), named_groups
        if result[0] is not None:
            members.append((pod, result[0], result[1]))
    return members


def _dialect_of(members: Sequence[_Member]) -> Dialect:
    """Return the dialect in which all members name their group; raise `InputError` for two dialects."""
    first_pod, first_membership, _ = members[0]
    name = first_membership.dialect
    for pod, membership, _ in members:
        if membership.problem is not None:
            raise InputError(f"pod {pod.metadata.name} contradicts itself: {membership.problem}")
        if membership.dialect != name:
            dialects = f"{name} ({first_pod.metadata.name}) and {membership.dialect} ({pod.metadata.name})"
            raise InputError(f"its pods name it in two dialects: {dialects}")
    return _BY_NAME[name]


def _check_sizes(gang: Gang, members: Sequence[_Member], find: Find) -> None:
    """Raise `InputError` if another dialect states a different size of the same group."""
    other_dialects: dict[Dialect, list[Pod]] = {}
    for pod, membership, named_groups in members:
        if membership.group == gang.key:
            for _, dialect in named_groups:
                if membership.dialect != dialect.NAME and dialect.STATES_SIZE:
                    other_dialects.setdefault(dialect, []).append(pod)
    for dialect, pods in other_dialects.items():
        try:
            other = dialect.read(gang.key, pods, find)
        except NoGroupError:
            continue  # the dialect has only the name of the group, no description
        if other.minimum not in (1, gang.minimum):  # 1 is the default of a group without a size
            sizes = f"{gang.minimum} ({gang.dialect}) and {other.minimum} ({dialect.NAME})"
            raise InputError(f"it has two sizes: {sizes}")


def _check_parts(gang: Gang, members: Sequence[_Member]) -> None:
    """Raise `InputError` for two parts of the same name, and for a pod in an unknown part."""
    if not gang.parts:
        return
    names = _part_names(gang.parts)
    known = frozenset(names)
    if "" in known:
        raise InputError("it has a part without a name")
    if len(known) < len(names):
        duplicate = min(name for name in names if names.count(name) > 1)
        raise InputError(f"it has two parts named {duplicate}")
    for pod, membership, _ in members:
        part = part_of(membership, gang.key)
        if part and part not in known:
            raise InputError(f'pod {pod.metadata.name} is in part "{part}", which the group does not have')
        if membership.part not in ("", part):
            raise InputError(f"pod {pod.metadata.name} is in two parts: {part} and {membership.part}")


def _part_names(parts: Iterable[GangPart]) -> list[str]:
    return [name for part in parts for name in (part.name, *_part_names(part.parts))]


def _one_line(problem: str | None) -> str | None:
    return None if problem is None else " ".join(problem.split())
