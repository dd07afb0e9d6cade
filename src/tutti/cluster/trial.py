"""Trial: a block of edits that is rolled back at its end, unless it is kept."""

from __future__ import annotations

from types import TracebackType

from tutti.cluster.cluster import Cluster


class Trial:
    """``with Trial(cluster) as trial:`` rolls back at the end, also after an exception, unless `keep` was called."""

    __slots__ = ("_cluster", "_kept", "_mark")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._kept, self._mark = cluster, False, 0

    def __enter__(self) -> Trial:
        self._mark = self._cluster.mark()
        return self

    def keep(self) -> None:
        """Commit the edits at the end of the block."""
        self._kept = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._kept and kind is None:
            self._cluster.commit(self._mark)
        else:
            self._cluster.rollback(self._mark)
