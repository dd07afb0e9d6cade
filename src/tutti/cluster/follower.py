"""What follows the marks of a cluster: state beside the columns that a rollback must undo as well."""

from __future__ import annotations

from typing import Protocol


class Follower(Protocol):
    """State that changes together with a cluster, and goes back when the cluster is rolled back.

    The cluster calls these methods in step with its own: every `mark` is followed by exactly one `rollback` or
    `commit`, in nested order.
    """

    def mark(self) -> None:
        """Remember this moment."""

    def rollback(self) -> None:
        """Undo everything since the last mark, and drop that mark."""

    def commit(self) -> None:
        """Drop the last mark and keep what was done since; an outer mark can still undo it."""
