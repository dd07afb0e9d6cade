"""The server's time from its Date headers."""

from __future__ import annotations

from email.utils import formatdate

from tutti.client.server_clock import ServerClock

SECOND = 1_000_000
START = 1_800_000_000


class World:
    """A server whose clock is ahead, and a monotonic clock that the test moves."""

    def __init__(self, ahead: float) -> None:
        self.seconds, self.ahead = 50.0, ahead

    def monotonic(self) -> float:
        return self.seconds

    def server_time(self) -> float:
        return START + self.seconds + self.ahead

    def answer(self, clock: ServerClock, *, delay: float = 0.01) -> None:
        sent = self.seconds
        date = formatdate(int(self.server_time() + delay / 2), usegmt=True)
        self.seconds += delay
        clock.observe(date, sent, self.seconds)


def test_many_answers_narrow_the_bounds() -> None:
    world = World(ahead=123.456)
    clock = ServerClock(monotonic=world.monotonic, wall=lambda: 0)
    for step in range(200):
        world.seconds += 0.37 + step / 1_000
        world.answer(clock)
    assert abs(clock.now() - world.server_time() * SECOND) < 0.03 * SECOND
    assert clock.jumps == 0


def test_a_jump_is_followed() -> None:
    world = World(ahead=0)
    clock = ServerClock(monotonic=world.monotonic, wall=lambda: 0)
    for _ in range(20):
        world.seconds += 0.9
        world.answer(clock)
    world.ahead -= 3_600
    world.answer(clock)
    assert clock.jumps == 1
    assert abs(clock.now() - world.server_time() * SECOND) < SECOND


def test_time_does_not_go_back_when_the_bounds_narrow() -> None:
    world = World(ahead=0.999)
    clock = ServerClock(monotonic=world.monotonic, wall=lambda: 0)
    last = 0
    for step in range(100):
        world.seconds += 0.01 + (step % 7) / 10
        world.answer(clock)
        assert clock.now() >= last
        last = clock.now()


def test_a_bad_header_says_nothing() -> None:
    clock = ServerClock(monotonic=lambda: 0.0, wall=lambda: 77)
    clock.observe("yesterday", 0.0, 0.0)
    assert clock.now() == 77
