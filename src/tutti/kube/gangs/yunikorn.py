"""YuniKorn: an application is a gang, and its task groups are the parts.

- The name of the application is ``yunikorn.apache.org/app-id`` (label or annotation) or the label ``applicationId``;
  without these, the label ``spark-app-selector``.
- Only pods with the annotation ``task-group-name`` or ``task-groups`` are in the gang; other pods of the application
  start alone, as in YuniKorn. A pod with only ``task-groups`` is in no part.
- ``task-groups``, JSON on at least one pod, has the ``minMember`` of each part; the gang's minimum is their sum. The
  other fields of a task group describe YuniKorn's placeholder pods; Tutti has no placeholder pods. So an application
  whose first pod creates the other pods waits for them, if its task groups count them.
- Both styles of gang scheduling mean the same here: ``Soft`` only adds a timeout of the placeholder pods.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import (
    Dialect,
    Find,
    NoGroupError,
    StringMap,
    agreed_value,
    annotation_of,
    checked_count,
    distinct_names,
)
from tutti.kube.gangs.gang import Gang, GangPart
from tutti.kube.objects import Pod

_DOMAIN = "yunikorn.apache.org/"
_APPLICATION = f"{_DOMAIN}app-id"
_OLD_APPLICATION = "applicationId"
_SPARK = "spark-app-selector"
_TASK_GROUP = f"{_DOMAIN}task-group-name"
_TASK_GROUPS = f"{_DOMAIN}task-groups"


class _TaskGroup(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    min_member: int


_DECODER = msgspec.json.Decoder(list[_TaskGroup])


class YuniKorn(Dialect):
    """The dialect of YuniKorn; the module's docstring has the rules."""

    NAME = "yunikorn"
    GROUP_KEYS = frozenset((_TASK_GROUP, _TASK_GROUPS))

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the application of a pod with a task group or a list of task groups."""
        if not annotations.get(_TASK_GROUP) and not annotations.get(_TASK_GROUPS):
            return ()
        names = distinct_names(labels.get(_APPLICATION), annotations.get(_APPLICATION), labels.get(_OLD_APPLICATION))
        return names or distinct_names(labels.get(_SPARK))

    def part_name(self, labels: StringMap, annotations: StringMap) -> str:
        """Return the task group of a pod."""
        return annotations.get(_TASK_GROUP, "")

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from the task groups that the pods list."""
        text = agreed_value(members, lambda pod: annotation_of(pod, _TASK_GROUPS), what="lists of task groups")
        if text is None:
            raise NoGroupError(f"none of its pods has {_TASK_GROUPS}")
        try:
            groups = _DECODER.decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise InputError(f"{_TASK_GROUPS} cannot be read: {error}") from None
        parts = tuple(
            GangPart(each.name, checked_count(each.min_member, f"minMember of {each.name}")) for each in groups
        )
        minimum = max(1, sum(part.minimum for part in parts))
        return Gang(key=key, dialect=self.NAME, minimum=minimum, parts=parts)
