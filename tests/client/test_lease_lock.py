"""A lock as a Lease object: one holder, taken over when it is silent, given back at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from tests.support.moved_clock import MovedClock
from tests.support.scripted_api_server import ScriptedApiServer
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.client.lease_lock import LeaseLock
from tutti.exceptions import ApiError


class LeaseServer(ScriptedApiServer):
    """An API server with one Lease and versions, as the real one checks them."""

    def __init__(self) -> None:
        super().__init__()
        self.lease: dict[str, Any] | None = None
        self.version = 10
        self.on_write: list[Callable[[], None]] = []
        """What happens just before the next writes are looked at."""
        self.lost_replies = 0
        """How many writes are carried out and then answered as if a proxy had sent them twice."""
        self.garbage = b""
        """The answer to a GET, if not empty."""

    def touch(self, **spec: Any) -> None:
        """Change the lease as another client would."""
        assert self.lease is not None
        self.version += 1
        metadata = {**self.lease["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**self.lease, "metadata": metadata, "spec": {**self.lease["spec"], **spec}}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET" and self.on_write:
            self.on_write.pop(0)()
        if request.method == "GET" and self.garbage:
            return web.Response(body=self.garbage, content_type="text/html")
        if request.method == "GET":
            return web.json_response(self.lease) if self.lease is not None else _refusal(404, "NotFound")
        body = await request.json()
        if request.method == "POST":
            if self.lease is not None:
                return _refusal(409, "AlreadyExists")
        elif self.lease is None or body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
            return _refusal(409, "Conflict")
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        if self.lost_replies:
            self.lost_replies -= 1
            return _refusal(409, "Conflict")
        return web.json_response(self.lease)


def _refusal(status: int, reason: str) -> web.Response:
    return web.json_response({"kind": "Status", "reason": reason, "code": status}, status=status)


def run(scene: Callable[[LeaseServer, Callable[[str], LeaseLock], MovedClock], Awaitable[None]]) -> None:
    """Play a scene with a server, a maker of locks and a clock."""

    async def play() -> None:
        clock = MovedClock()
        async with LeaseServer() as server:
            access, draw = ClusterAccess(server=server.url), random.Random(1)
            client = ApiClient(access, user_agent="test", monotonic=clock.monotonic, wall=clock.wall, draw=draw)

            def lock(identity: str) -> LeaseLock:
                return LeaseLock(
                    client,
                    "kube-system/tutti",
                    identity=identity,
                    duration=15,
                    monotonic=clock.monotonic,
                    wall=clock.wall,
                )

            try:
                await scene(server, lock, clock)
            finally:
                await client.close()

    asyncio.run(play())


def test_the_first_holds_it_and_renews() -> None:
    async def scene(server: LeaseServer, lock: Callable[[str], LeaseLock], clock: MovedClock) -> None:
        one, two = lock("one"), lock("two")
        assert await one.try_to_hold(5)
        assert not await two.try_to_hold(5)
        assert server.lease is not None
        acquired = server.lease["spec"]["acquireTime"]
        for _ in range(10):
            clock.seconds += 10
            assert await one.try_to_hold(5)
            assert not await two.try_to_hold(5)
        spec = server.lease["spec"]
        assert spec["acquireTime"] == acquired
        assert spec["leaseTransitions"] == 0
        assert spec["renewTime"].endswith(".000000Z")
        assert two.holder == "one"

    run(scene)


def test_it_passes_on_when_the_holder_is_silent() -> None:
    async def scene(server: LeaseServer, lock: Callable[[str], LeaseLock], clock: MovedClock) -> None:
        one, two = lock("one"), lock("two")
        assert await one.try_to_hold(5)
        assert not await two.try_to_hold(5)
        clock.seconds += 14
        assert not await two.try_to_hold(5)
        clock.seconds += 2
        assert await two.try_to_hold(5)
        assert server.lease is not None
        assert server.lease["spec"]["leaseTransitions"] == 1
        assert not await one.try_to_hold(5)

    run(scene)


def test_a_newcomer_waits_for_a_whole_duration() -> None:
    """However old the last renewal looks: the clocks of two machines may differ."""

    async def scene(_server: LeaseServer, lock: Callable[[str], LeaseLock], clock: MovedClock) -> None:
        assert await lock("one").try_to_hold(5)
        clock.seconds += 3_600
        two = lock("two")
        assert not await two.try_to_hold(5)
        clock.seconds += 16
        assert await two.try_to_hold(5)

    run(scene)


def test_a_released_lock_is_free_at_once() -> None:
    async def scene(_server: LeaseServer, lock: Callable[[str], LeaseLock], _clock: MovedClock) -> None:
        one, two = lock("one"), lock("two")
        assert await one.try_to_hold(5)
        await two.release(5)
        assert not await two.try_to_hold(5)
        await one.release(5)
        assert await two.try_to_hold(5)

    run(scene)


def test_of_two_that_try_at_once_one_succeeds() -> None:
    async def scene(_server: LeaseServer, lock: Callable[[str], LeaseLock], clock: MovedClock) -> None:
        assert await lock("old").try_to_hold(5)
        locks = [lock(f"new-{n}") for n in range(5)]
        assert not any([await each.try_to_hold(5) for each in locks])
        clock.seconds += 16
        assert sum(await asyncio.gather(*(each.try_to_hold(5) for each in locks))) == 1

    run(scene)


def test_a_lease_that_was_changed_by_the_way_is_not_lost() -> None:
    async def scene(server: LeaseServer, lock: Callable[[str], LeaseLock], _clock: MovedClock) -> None:
        one = lock("one")
        assert await one.try_to_hold(5)
        server.on_write = [server.touch]
        assert await one.try_to_hold(5)
        server.on_write = [lambda: server.touch(holderIdentity="two")]
        assert not await one.try_to_hold(5)
        assert one.holder == "two"

    run(scene)


def test_a_renewal_that_is_sent_twice_is_no_loss() -> None:
    """A proxy that lost the answer to the first sends it again; the second meets the version of the first."""

    async def scene(server: LeaseServer, lock: Callable[[str], LeaseLock], _clock: MovedClock) -> None:
        one = lock("one")
        for _ in range(2):  # taken, then renewed
            server.lost_replies = 1
            assert await one.try_to_hold(5)
        server.lost_replies = 1
        await one.release(5)
        assert server.lease is not None
        assert server.lease["spec"]["holderIdentity"] == ""

    run(scene)


def test_a_lease_that_is_always_changed_says_nothing() -> None:
    async def scene(server: LeaseServer, lock: Callable[[str], LeaseLock], _clock: MovedClock) -> None:
        one = lock("one")
        assert await one.try_to_hold(5)
        server.on_write = [server.touch] * 2
        with pytest.raises(ApiError) as caught:
            await one.try_to_hold(5)
        assert caught.value.status == 409
        assert await one.try_to_hold(5)

    run(scene)


def test_an_answer_that_is_no_lease() -> None:
    async def scene(server: LeaseServer, lock: Callable[[str], LeaseLock], _clock: MovedClock) -> None:
        server.garbage = b"<html>log in</html>"
        with pytest.raises(ApiError, match="not a Lease"):
            await lock("one").try_to_hold(5)

    run(scene)
