"""The interface of a dialect of gang scheduling, and the helpers that all dialects share.

Contract: a dialect has methods for the group and the part that a pod names (`group_names`, `part_name`: pure, cheap,
never raise) and a method that reads the gang (`read`). `read` raises `InputError` with one sentence for a missing
object, a contradiction or an unsupported field; the reader stores the sentence as the gang's problem. Members are
sorted by key, so that the same pods give the same sentence. Only two different values are a contradiction; a pod
without a value agrees with the other pods.
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
"""A function that returns the object of a `KIND` with a key, or None."""
StringMap = Mapping[str, str]
"""Labels or annotations."""

_Some = TypeVar("_Some", bound=Object)
_Value = TypeVar("_Value", str, int)
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_MAX_COUNT = 2**31 - 1


class NoGroupError(InputError):
    """The group has no description: its object does not exist, or its pods have no size."""


class Dialect:
    """One way to declare gangs: the labels, annotations and objects of one scheduler."""

    NAME: ClassVar[str] = ""
    GROUP_KEYS: ClassVar[frozenset[str]] = frozenset()
    """Label and annotation keys; each pod that names a group has at least one of them."""
    STATES_SIZE: ClassVar[bool] = True
    """Whether the dialect states a minimum; otherwise the minimum is the number of pods."""
    DISRUPTION: ClassVar[DisruptionMode] = DisruptionMode.WHOLE
    """The default disruption mode of the dialect's gangs."""

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the groups that a pod names, in the pod's namespace; two different names are a contradiction."""
        raise NotImplementedError

    def part_name(self, labels: StringMap, annotations: StringMap) -> str:
        """Return the part of the group that a pod names; empty if the pod names none."""
        return ""

    def group_objects(self, key: str, find: Find) -> Sequence[Object]:
        """Return the group's objects; their annotations apply to the whole gang."""
        return ()

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from the group's objects and members; raise `InputError` for a problem."""
        raise NotImplementedError


def distinct_names(*names: str | None) -> list[str]:
    """Return the names that are not empty, each once, in order."""
    return list(dict.fromkeys(name for name in names if name))


def find_object(find: Find, kind: type[_Some], key: str) -> _Some | None:
    """Return the object of a kind with a key; None if it does not exist."""
    obj = find(kind.KIND, key)
    return obj if isinstance(obj, kind) else None


def require_object(find: Find, kind: type[_Some], key: str) -> _Some:
    """Return the object of a kind with a key; raise `NoGroupError` if it does not exist."""
    obj = find_object(find, kind, key)
    if obj is None:
        raise NoGroupError(f"{kind.WIRE_KIND} {key} is not there")
    return obj


def label_of(pod: Pod, key: str) -> str | None:
    """Return a pod's label; None if it is absent or empty."""
    return (pod.metadata.labels or {}).get(key) or None


def annotation_of(pod: Pod, key: str) -> str | None:
    """Return a pod's annotation; None if it is absent or empty."""
    return (pod.metadata.annotations or {}).get(key) or None


def label_or_annotation(pod: Pod, key: str) -> str | None:
    """Return a pod's label or annotation of a key; raise `InputError` if the two have different values."""
    label, annotation = label_of(pod, key), annotation_of(pod, key)
    if label and annotation and label != annotation:
        raise InputError(f"pod {pod.metadata.name} says {key} twice: {label} in a label, {annotation} in an annotation")
    return label or annotation


def agreed_value(members: Iterable[Pod], value_of: Callable[[Pod], _Value | None], *, what: str) -> _Value | None:
    """Return the value that all members with a value share; None if no member has a value.

    `what` is the plural noun of the value, for the error message about two different values.
    """
    first: tuple[_Value, str] | None = None
    for pod in members:
        value = value_of(pod)
        if value is None:
            continue
        if first is None:
            first = (value, pod.metadata.name)
        elif value != first[0]:
            raise InputError(f"its pods name two {what}: {first[0]} ({first[1]}) and {value} ({pod.metadata.name})")
    return None if first is None else first[0]


def parse_count(text: str, what: str, *, least: int = 0) -> int:
    """Parse an integer of at least `least` from a label or an annotation."""
    if _NUMBER.fullmatch(text) is None:
        raise InputError(f'{what} "{text}" is not a number')
    return checked_count(int(text), what, least=least)


def checked_count(value: int, what: str, *, least: int = 0) -> int:
    """Return a number of pods or of parts; raise `InputError` if it is out of range."""
    if value < least:
        raise InputError(f"{what} {value} is less than {least}")
    if value > _MAX_COUNT:
        raise InputError(f"{what} {value} is more than {_MAX_COUNT}")
    return value


def creation_time(obj: Object | None) -> int | None:
    """Return the creation time of a group in microseconds; None if it is unknown."""
    return micros(obj.metadata.creation_timestamp) if obj is not None and obj.metadata.creation_timestamp else None


def class_priority(
    name: str | None, members: Iterable[Pod], find: Find, *, known: Mapping[str, int] = SYSTEM_PRIORITIES
) -> int | None:
    """Return the value of a priority class; None without a name.

    If the class does not exist and is not in `known`, return the priority of a member with the same class name: an API
    server has looked up its priority.
    """
    if not name:
        return None
    priority_class = find_object(find, PriorityClass, name)
    if priority_class is not None:
        return priority_class.value
    if name in known:
        return known[name]
    for pod in members:
        if pod.spec.priority_class_name == name and pod.spec.priority is not None:
            return pod.spec.priority
    raise InputError(f"PriorityClass {name} is not there")


def unfinished_pods(members: Iterable[Pod]) -> list[Pod]:
    """Return the members that are not finished.

    A terminating pod counts until it is deleted: while a whole gang is evicted, the remaining pods are not a smaller
    gang.
    """
    return [pod for pod in members if pod.status.phase not in ("Succeeded", "Failed")]


def least_pods(minimum: int, parts: Sequence[GangPart], parts_needed: int | None) -> int:
    """Return the least number of pods with which a gang or a part can start.

    This is the larger of its minimum and the sum over the parts that it needs, the smallest parts first.
    """
    part_minimums = sorted(least_pods(part.minimum, part.parts, part.parts_needed) for part in parts)
    return max(minimum, sum(part_minimums if parts_needed is None else part_minimums[:parts_needed]))
