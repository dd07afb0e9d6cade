"""Connections: what happens when the client certificate changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.credentials import Identity
from tutti.client.http.connections import Connections
from tutti.exceptions import InputError

BAD = Identity(certificate=b"half a certificate", key=b"key")


def run(scene: Callable[[Connections], Awaitable[None]], *, server: str = "https://api.invalid") -> None:
    async def play() -> None:
        connections = Connections(ClusterAccess(server=server), limit=2, monotonic=time.monotonic)
        try:
            await scene(connections)
        finally:
            await connections.close()

    asyncio.run(play())


def test_the_session_stays_while_the_certificate_does() -> None:
    async def scene(connections: Connections) -> None:
        assert connections.session(Identity("Bearer a")) is connections.session(Identity("Bearer b"))

    run(scene)


def test_a_certificate_that_cannot_be_used() -> None:
    """The first is an error; later the old one stays, for example while its files are being replaced."""

    async def scene(connections: Connections) -> None:
        with pytest.raises(InputError, match="cannot be used"):
            connections.session(BAD)
        session = connections.session(Identity())
        for _ in range(2):
            assert connections.session(BAD) is session
        assert not session.closed

    run(scene)


def test_old_sessions_are_closed_at_the_end() -> None:
    async def scene(connections: Connections) -> None:
        sessions = [connections.session(Identity(certificate=name, key=b"key")) for name in (b"one", b"two")]
        assert sessions[0] is not sessions[1]
        assert not sessions[0].closed
        await connections.close()
        assert [each.closed for each in sessions] == [True, True]

    run(scene, server="http://api.invalid")
