"""YuniKorn: an application is a gang, and its task groups are the parts.

- The application is named by ``yunikorn.apache.org/app-id`` (label or annotation) or the label ``applicationId``; the
  label ``spark-app-selector`` counts when none of them is there.
- Only pods that say ``task-group-name`` or ``task-groups`` are in the gang; an application's other pods start by
  themselves, as in YuniKorn. A pod that says only ``task-groups`` is in no part.
- ``task-groups``, JSON on at least one pod, gives the parts their ``minMember``; the gang's minimum is their sum. What
  else a task group says shapes YuniKorn's placeholder pods. There are none here: pods are what starts. So an
  application whose first pod makes the others waits for them, if its task groups count them.
- Both styles of gang scheduling mean the same: ``Soft`` gives the gang up after a timeout of the placeholders.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Dialect, Find, NoGroupError, Texts, agreed, annotation_of, distinct, within
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
    """See the module's contract."""

    NAME = "yunikorn"
    MARKS = frozenset((_TASK_GROUP, _TASK_GROUPS))

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The application of a pod that has a task group, or says what they are."""
        if not annotations.get(_TASK_GROUP) and not annotations.get(_TASK_GROUPS):
            return ()
        named = distinct(labels.get(_APPLICATION), annotations.get(_APPLICATION), labels.get(_OLD_APPLICATION))
        return named or distinct(labels.get(_SPARK))

    def part(self, labels: Texts, annotations: Texts) -> str:
        """The task group of a pod."""
        return annotations.get(_TASK_GROUP, "")

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the pods say of their task groups."""
        text = agreed(members, lambda pod: annotation_of(pod, _TASK_GROUPS), what="lists of task groups")
        if text is None:
            raise NoGroupError(f"no pod of it says {_TASK_GROUPS}")
        try:
            groups = _DECODER.decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise InputError(f"{_TASK_GROUPS} cannot be read: {error}") from None
        parts = tuple(GangPart(each.name, within(each.min_member, f"minMember of {each.name}")) for each in groups)
        minimum = max(1, sum(part.minimum for part in parts))
        return Gang(key=key, dialect=self.NAME, minimum=minimum, parts=parts)
