"""The undo log: marks, and the inverse edits that a rollback applies.

Contract: while a mark is open, every change of the cluster adds its inverse edit. `rollback` applies the inverse edits
since a mark, the newest first, and restores the event counters of that mark. Without a mark nothing is logged. State
outside of the columns that must follow (`Follower`) is marked, rolled back and committed together with the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from tutti.cluster.edits import Edit
from tutti.exceptions import ConflictError


class Follower(Protocol):
    """State that changes together with a cluster and is rolled back with it.

    Each `mark` is followed by exactly one `rollback` or `commit`, in nested order.
    """

    def mark(self) -> None:
        """Remember the current state."""

    def rollback(self) -> None:
        """Undo all changes since the last mark, and drop that mark."""

    def commit(self) -> None:
        """Drop the last mark and keep the changes since; an outer mark can still undo them."""


class UndoLog:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.marks: list[list[int]] = []
        """The event counters at each open mark; edits are logged while there is one."""
        self.is_undoing = False
        """Whether a rollback is applying inverse edits."""
        self._edits: list[Edit] = []
        self._edit_start = 0
        self._followers: list[Follower] = []

    def attach(self, follower: Follower) -> None:
        """Mark, roll back and commit a follower together with the cluster."""
        if self.marks:
            raise ConflictError("a follower cannot be attached between a mark and its rollback")
        self._followers.append(follower)

    # Logging ----------------------------------------------------------------------------------------------------------

    def begin_edit(self) -> None:
        """Start the log entries of the next edit."""
        self._edit_start = len(self._edits)

    def add(self, edit: Edit) -> None:
        """Log an inverse edit, if a mark is open."""
        if self.marks:
            self._edits.append(edit)

    def add_all(self, edits: Iterable[Edit]) -> None:
        """Log inverse edits, the last of which a rollback applies first, if a mark is open."""
        if self.marks:
            self._edits.extend(edits)

    def add_to_front(self, edit: Edit) -> None:
        """Log an inverse edit that a rollback applies after all other inverse edits of the current edit."""
        if self.marks:
            self._edits.insert(self._edit_start, edit)
            self._edit_start += 1

    # Marks ------------------------------------------------------------------------------------------------------------

    def mark(self, events: list[int]) -> int:
        """Open a mark, and return it; `events` are the event counters to restore."""
        self.marks.append(events.copy())
        for follower in self._followers:
            follower.mark()
        return len(self._edits)

    def rollback(self, mark: int, apply: Callable[[Edit], None]) -> list[int]:
        """Apply the inverse edits since the mark, close it, and return its event counters."""
        edits = self._edits
        events = self.marks.pop()
        was_undoing, self.is_undoing = self.is_undoing, True
        try:
            while len(edits) > mark:
                edit = edits.pop()
                length = len(edits)
                apply(edit)
                del edits[length:]  # drop the inverse edits that the undo itself logged
        finally:
            self.is_undoing = was_undoing
        for follower in self._followers:
            follower.rollback()
        return events

    def commit(self, mark: int) -> None:
        """Close the mark and keep its edits; an outer mark can still undo them."""
        self.marks.pop()
        if not self.marks:
            del self._edits[mark:]
        for follower in self._followers:
            follower.commit()
