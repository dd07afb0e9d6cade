"""Followers: state outside the columns that a rollback of the cluster must undo as well."""

from __future__ import annotations

from typing import Protocol


class Follower(Protocol):
    """State that changes together with a cluster and is rolled back with it.

    The cluster calls these methods together with its own: each `mark` is followed by exactly one `rollback` or
    `commit`, in nested order.
    """

    def mark(self) -> None:
        """Remember the current state."""

    def rollback(self) -> None:
        """Undo all changes since the last mark, and drop that mark."""

    def commit(self) -> None:
        """Drop the last mark and keep the changes since; an outer mark can still undo them."""
