"""A lock as a Lease on a real API server: one holder, and a takeover only after the lease has expired."""

from __future__ import annotations

import asyncio
import time

from tests.controlplane.audit_log import read_audit_log
from tests.controlplane.cluster_setup import send
from tests.controlplane.control_plane import ControlPlane
from tutti.client.api_client import ApiClient
from tutti.client.lease_lock import LeaseLock
from tutti.client.resources import LEASES

DURATION = 2


def lock(client: ApiClient, namespace: str, identity: str) -> LeaseLock:
    return LeaseLock(
        client,
        f"{namespace}/tutti",
        identity=identity,
        duration=DURATION,
        monotonic=time.monotonic,
        wall=lambda: time.time_ns() // 1_000,
    )


async def test_of_many_at_once_one_holds_the_lock(client: ApiClient, namespace: str) -> None:
    locks = {name: lock(client, namespace, name) for name in "abcdefgh"}
    results = await asyncio.gather(*(each.try_to_hold(30) for each in locks.values()))
    assert sum(results) == 1
    winner = next(name for name, held in zip(locks, results, strict=True) if held)
    stored = await send(client, "GET", LEASES.path(namespace, "tutti"))
    assert stored["spec"]["holderIdentity"] == winner


async def test_is_taken_over_only_after_it_has_expired(
    control_plane: ControlPlane, client: ApiClient, namespace: str
) -> None:
    first, second = lock(client, namespace, "first"), lock(client, namespace, "second")
    assert await first.try_to_hold(30)
    assert not await second.try_to_hold(30)
    assert second.holder == "first"
    renewed = time.monotonic()
    assert await first.try_to_hold(30)
    while not await second.try_to_hold(30):
        await asyncio.sleep(0.05)
    assert time.monotonic() - renewed >= DURATION
    assert not await first.try_to_hold(30)
    stored = (await send(client, "GET", LEASES.path(namespace, "tutti")))["spec"]
    assert (stored["holderIdentity"], stored["leaseTransitions"]) == ("second", 1)
    entries = [e for e in read_audit_log(control_plane.audit_log) if e.object_ref.namespace == namespace]
    writes = [e for e in entries if e.object_ref.resource == "leases" and e.verb in ("create", "update")]
    assert [e.request_object["spec"]["holderIdentity"] for e in writes] == ["first", "first", "second"]


async def test_a_released_lock_is_free_at_once(client: ApiClient, namespace: str) -> None:
    first, second = lock(client, namespace, "first"), lock(client, namespace, "second")
    assert await first.try_to_hold(30)
    await second.release(30)
    assert not await second.try_to_hold(30), "only the holder can release"
    await first.release(30)
    assert await second.try_to_hold(30)
