"""Group index: which pods name which pod group.

Contract: every group that a pod names has a number. `members` holds the rows of the pods that name a group now;
`version` changes when a member is added, removed or replaced. `kube.gangs` decides whether a group exists and reads its
objects. `collect` gives back the numbers of groups without members; when a number is used again, its version is higher
than all before, and `renamed` has an entry.
"""

from __future__ import annotations

from copy import copy

from tutti.cluster.columns import RowLog
from tutti.kube.gangs.gang import Membership
from tutti.kube.gangs.reader import membership
from tutti.kube.objects import Pod

NO_GROUP = -1
_MAX_CHANGED_OBJECTS = 4_096


class GroupIndex:
    """The members of each pod group; see the module's contract."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.number_of: dict[str, int] = {}
        self.members: list[set[int]] = []
        self.version: list[int] = []
        self.touched = RowLog()
        """The numbers of groups whose version has changed."""
        self.changed_objects: list[tuple[str, str]] = []
        """Kind and key of objects that changed and may describe groups, the latest last."""
        self.changed_objects_dropped = 0
        """The number of entries that were dropped from the front of `changed_objects`."""
        self.renamed = RowLog()
        """The numbers that were given to a group, or given back."""
        self._free: list[int] = []
        self._emptied: set[int] = set()
        """Groups that have lost their last member; some may have members again."""
        self._first_version = 0
        self.membership_by_row: dict[int, Membership] = {}
        """The group membership that each pod declares, by pod row."""
        self.finished: dict[int, dict[str, Membership]] = {}
        """The memberships of pods that have succeeded, by group number and pod key."""

    def put(self, row: int, pod: Pod, *, before: int) -> int:
        """Record the group that the pod in a row names, and return the group's number."""
        pod_membership = membership(pod)
        if before != NO_GROUP:
            self.drop(row, before)
        if pod_membership is None:
            return NO_GROUP
        number = self._number(pod_membership.group)
        self.members[number].add(row)
        self._touch(number)
        self.membership_by_row[row] = pod_membership
        return number

    def _number(self, group: str) -> int:
        number = self.number_of.get(group)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.keys[number], self.version[number] = group, self._first_version
            else:
                number = len(self.keys)
                self.keys.append(group)
                self.members.append(set())
                self.version.append(self._first_version)
            self.number_of[group] = number
            self.renamed.add(number)
        return number

    def put_finished(self, pod: str, declared: Membership) -> None:
        """Record that a member has succeeded."""
        number = self._number(declared.group)
        self.finished.setdefault(number, {})[pod] = declared
        self._touch(number)

    def drop_finished(self, pod: str, declared: Membership) -> None:
        """Forget a member that had succeeded."""
        number = self.number_of.get(declared.group, NO_GROUP)
        members = self.finished.get(number)
        if members is None or members.pop(pod, None) is None:
            return
        self._touch(number)
        if not members:
            del self.finished[number]
            self._emptied.add(number)

    def object_changed(self, kind: str, key: str) -> None:
        """Record a change of an object that may describe groups."""
        self.changed_objects.append((kind, key))
        if len(self.changed_objects) > 2 * _MAX_CHANGED_OBJECTS:
            del self.changed_objects[:_MAX_CHANGED_OBJECTS]
            self.changed_objects_dropped += _MAX_CHANGED_OBJECTS

    def drop(self, row: int, number: int) -> None:
        """Remove the pod in a row from a group."""
        members = self.members[number]
        members.discard(row)
        if not members:
            self._emptied.add(number)
        self._touch(number)
        self.membership_by_row.pop(row, None)

    def _touch(self, number: int) -> None:
        self.version[number] += 1
        self.touched.add(number)

    def collect(self) -> int:
        """Give back the numbers of groups without members; return how many."""
        before = len(self._free)
        for number in sorted(self._emptied):
            if not self.members[number] and number not in self.finished:
                del self.number_of[self.keys[number]]
                self.keys[number] = ""
                self._first_version = max(self._first_version, self.version[number] + 1)
                self._free.append(number)
                self.renamed.add(number)
        self._emptied.clear()
        return len(self._free) - before

    def copy(self) -> GroupIndex:
        """Copy the index."""
        clone = copy(self)
        clone.keys, clone.version = list(self.keys), list(self.version)
        clone.touched, clone.changed_objects = self.touched.copy(), list(self.changed_objects)
        clone.renamed, clone._free, clone._emptied = self.renamed.copy(), list(self._free), set(self._emptied)
        clone.members = [set(rows) for rows in self.members]
        clone.number_of, clone.membership_by_row = dict(self.number_of), dict(self.membership_by_row)
        clone.finished = {number: dict(members) for number, members in self.finished.items()}
        return clone
