"""Which pods name which group.

Contract: every group that a pod ever named has a number; `members` are the rows of the pods that name it now, and
`version` moves when one of them comes, goes, or is put anew. Whether a group exists, and what it says, is for
`kube.gangs` to read.
"""

from __future__ import annotations

from copy import copy

from tutti.cluster.columns import RowLog
from tutti.kube.gangs.gang import Membership
from tutti.kube.gangs.reader import membership
from tutti.kube.objects import Pod

NO_GROUP = -1


class GroupIndex:
    """See the module's contract."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.number_of: dict[str, int] = {}
        self.members: list[set[int]] = []
        self.version: list[int] = []
        self.objects_version = 0
        """Moves when an object changes that may say something about any group."""
        self.touched = RowLog()
        """The numbers of groups whose version has moved."""
        self.objects_touched = RowLog()
        """The numbers of groups whose own objects have changed."""
        self.named_by: dict[int, Membership] = {}
        """What the pods in groups say, by row."""

    def put(self, row: int, pod: Pod, *, before: int) -> int:
        """Note what group the pod in a row names; give its number."""
        named = membership(pod)
        if before != NO_GROUP:
            self.drop(row, before)
        if named is None:
            return NO_GROUP
        number = self.number_of.get(named.group)
        if number is None:
            number = self.number_of[named.group] = len(self.keys)
            self.keys.append(named.group)
            self.members.append(set())
            self.version.append(0)
        self.members[number].add(row)
        self._touch(number)
        self.named_by[row] = named
        return number

    def object_changed(self, key: str) -> None:
        """Note that the object of a group has changed."""
        number = self.number_of.get(key)
        if number is not None:
            self._touch(number)
            self.objects_touched.add(number)

    def drop(self, row: int, number: int) -> None:
        """Forget the pod in a row."""
        self.members[number].discard(row)
        self._touch(number)
        self.named_by.pop(row, None)

    def _touch(self, number: int) -> None:
        self.version[number] += 1
        self.touched.add(number)

    def copy(self) -> GroupIndex:
        """Copy what is noted."""
        twin = copy(self)
        twin.keys, twin.version = list(self.keys), list(self.version)
        twin.touched, twin.objects_touched = self.touched.copy(), self.objects_touched.copy()
        twin.members = [set(rows) for rows in self.members]
        twin.number_of, twin.named_by = dict(self.number_of), dict(self.named_by)
        return twin
