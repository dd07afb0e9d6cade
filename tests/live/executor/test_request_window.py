"""How many requests are under way at once."""

from __future__ import annotations

import asyncio

from tests.support.moved_clock import MovedClock
from tutti.live.executor.request_window import RequestWindow


def window(first: int = 4, most: int = 8, max_qps: float | None = None) -> tuple[RequestWindow, MovedClock]:
    clock = MovedClock()
    return RequestWindow(first=first, most=most, monotonic=clock.monotonic, max_qps=max_qps), clock


def answer(made: RequestWindow, count: int, seconds: float = 0.001) -> int:
    for _ in range(count):
        made.answered(seconds)
    return made.width


def overload(made: RequestWindow, count: int) -> int:
    for _ in range(count):
        made.overloaded()
    return made.width


def test_slow_answers_do_not_widen_it_beyond_the_first_width() -> None:
    made, _ = window(first=4)
    assert answer(made, 100, seconds=0.05) == 4
    assert overload(made, 4) == 2
    assert answer(made, 100, seconds=0.05) == 4


def test_it_grows_by_one_for_each_full_window() -> None:
    made, _ = window()
    assert [answer(made, 4), answer(made, 4), answer(made, 1), answer(made, 6)] == [5, 5, 6, 7]
    assert answer(made, 1_000) == 8


def test_it_begins_with_no_more_than_the_maximum() -> None:
    assert window(first=16, most=3)[0].width == 3


def test_a_server_that_is_always_too_busy_halves_it() -> None:
    made, _ = window(first=8)
    assert [overload(made, 7), overload(made, 1), overload(made, 3), overload(made, 1)] == [8, 4, 4, 2]


def test_a_server_that_is_seldom_too_busy_narrows_it_by_one() -> None:
    made, _ = window(first=8)
    overload(made, 1)
    assert [answer(made, 6), answer(made, 1), answer(made, 7)] == [8, 7, 8]


def test_it_is_never_closed_and_grows_again() -> None:
    made, _ = window(first=1)
    assert overload(made, 3) == 1
    assert answer(made, 1) == 2


def test_requests_start_at_most_at_the_given_rate(monkeypatch) -> None:
    made, clock = window(max_qps=10)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(round(seconds, 6))

    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def scene() -> None:
        for _ in range(4):
            await made.pace()
        clock.seconds += 60
        await made.pace()
        await made.pace()

    asyncio.run(scene())
    assert waits == [0.1, 0.2, 0.3, 0.1]


def test_without_a_rate_nothing_waits() -> None:
    made, _ = window()
    asyncio.run(made.pace())
