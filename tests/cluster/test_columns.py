"""The log of touched rows."""

from __future__ import annotations

from tutti.cluster.columns import RowLog


def test_since_returns_the_rows_after_a_position() -> None:
    log = RowLog()
    for row in range(3000):
        log.add(row)
    assert log.length == 3000
    assert log.since(2998).tolist() == [2998, 2999]
    assert log.copy().since(2999).tolist() == [2999]


def test_old_entries_are_dropped_and_late_readers_get_all_kept_entries() -> None:
    log = RowLog(1024)
    for row in range(5000):
        log.add(row)
    assert log.since(4990).tolist() == list(range(4990, 5000))
    late = log.since(10).tolist()
    assert len(late) >= 512
    assert late[-1] == 4999
