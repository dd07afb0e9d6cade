"""What a dialect of gang scheduling is, and what all of them read with.

Contract: a dialect says which group a pod names (`names`, `part`: pure, cheap, never raising) and what that group says
(`read`). `read` raises `InputError` with one plain sentence for what is missing, contradicts itself or is not
understood; the reader makes it the gang's problem. Members come sorted by key, so that the same pods give the same
sentence. Who says nothing goes along with those who do: only two different values contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, TypeVar

from tutti.exceptions import InputError
from tutti.kube.admission.pod_admission import SYSTEM_PRIORITIES
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart
from tutti.kube.objects import Object, Pod, PriorityClass
from tutti.kube.times import micros

Find = Callable[[str, str], Object | None]
"""Gives the object of a `KIND` with a key, if it is there."""
Texts = Mapping[str, str]
"""Labels or annotations."""

_Some = TypeVar("_Some", bound=Object)
_Value = TypeVar("_Value", str, int)
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_LARGEST = 2**31 - 1


class NoGroupError(InputError):
    """Nobody describes the group: its object is not there, or its pods say nothing."""


class Dialect:
    """One way of naming and describing groups."""

    NAME: ClassVar[str] = ""
    MARKS: ClassVar[frozenset[str]] = frozenset()
    """Labels and annotations of which every pod that names a group has at least one."""
    STATES_SIZE: ClassVar[bool] = True
    """Whether a minimum is said, rather than counted from the pods."""
    DISRUPTION: ClassVar[DisruptionMode] = DisruptionMode.WHOLE
    """How a gang is evicted that says nothing of it."""

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The groups that a pod names, in its own namespace; more than one is a contradiction."""
        raise NotImplementedError

    def part(self, labels: Texts, annotations: Texts) -> str:
        """The part of the group that a pod is in."""
        return ""

    def objects(self, key: str, find: Find) -> Sequence[Object]:
        """The group's own objects, whose annotations speak for the whole gang."""
        return ()

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the group says."""
        raise NotImplementedError


def distinct(*names: str | None) -> list[str]:
    """Names that are not empty, each once."""
    return list(dict.fromkeys(name for name in names if name))


def found(find: Find, kind: type[_Some], key: str) -> _Some | None:
    """The object of a kind with a key, if it is there."""
    obj = find(kind.KIND, key)
    return obj if isinstance(obj, kind) else None


def required(find: Find, kind: type[_Some], key: str) -> _Some:
    """The object of a kind with a key, which must be there."""
    obj = found(find, kind, key)
    if obj is None:
        raise NoGroupError(f"{kind.WIRE_KIND} {key} is not there")
    return obj


def label_of(pod: Pod, key: str) -> str | None:
    """A pod's label, if it is there and not empty."""
    return (pod.metadata.labels or {}).get(key) or None


def annotation_of(pod: Pod, key: str) -> str | None:
    """A pod's annotation, if it is there and not empty."""
    return (pod.metadata.annotations or {}).get(key) or None


def either_of(pod: Pod, key: str) -> str | None:
    """A pod's label or annotation of that key; a pod that has both says the same in both."""
    label, annotation = label_of(pod, key), annotation_of(pod, key)
    if label and annotation and label != annotation:
        raise InputError(f"pod {pod.metadata.name} says {key} twice: {label} in a label, {annotation} in an annotation")
    return label or annotation


def agreed(members: Iterable[Pod], said: Callable[[Pod], _Value | None], *, what: str) -> _Value | None:
    """What those members that say something all say; `what` is the plural of it."""
    first: tuple[_Value, str] | None = None
    for pod in members:
        value = said(pod)
        if value is None:
            continue
        if first is None:
            first = (value, pod.metadata.name)
        elif value != first[0]:
            raise InputError(f"its pods name two {what}: {first[0]} ({first[1]}) and {value} ({pod.metadata.name})")
    return None if first is None else first[0]


def number(text: str, what: str, *, least: int = 0) -> int:
    """A whole number that somebody wrote in a label or an annotation."""
    if _NUMBER.fullmatch(text) is None:
        raise InputError(f'{what} "{text}" is not a number')
    return within(int(text), what, least=least)


def within(value: int, what: str, *, least: int = 0) -> int:
    """A number of pods, or of parts, that makes sense."""
    if value < least:
        raise InputError(f"{what} {value} is less than {least}")
    if value > _LARGEST:
        raise InputError(f"{what} {value} is more than {_LARGEST}")
    return value


def created(obj: Object | None) -> int | None:
    """When a group was made, in microseconds."""
    return micros(obj.metadata.creation_timestamp) if obj is not None and obj.metadata.creation_timestamp else None


def priority_named(
    name: str | None, members: Iterable[Pod], find: Find, *, known: Mapping[str, int] = SYSTEM_PRIORITIES
) -> int | None:
    """The value of a priority class; None when none is named.

    A class that is not there is taken from the members, if one of them names the same: an API server has looked it up.
    """
    if not name:
        return None
    named = found(find, PriorityClass, name)
    if named is not None:
        return named.value
    if name in known:
        return known[name]
    for pod in members:
        if pod.spec.priority_class_name == name and pod.spec.priority is not None:
            return pod.spec.priority
    raise InputError(f"PriorityClass {name} is not there")


def waiting_or_running(members: Iterable[Pod]) -> list[Pod]:
    """Members that count: those that have not finished.

    One that is terminating counts until it is gone: when a whole gang is evicted, the rest of it is not a smaller gang.
    """
    return [pod for pod in members if pod.status.phase not in ("Succeeded", "Failed")]


def least(minimum: int, parts: Sequence[GangPart], parts_needed: int | None) -> int:
    """How many pods a gang, or a part, starts with at the very least: its minimum, or what the parts it needs need."""
    inner = sorted(least(part.minimum, part.parts, part.parts_needed) for part in parts)
    return max(minimum, sum(inner if parts_needed is None else inner[:parts_needed]))
