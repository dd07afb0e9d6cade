"""A lock as a Lease object: at most one process holds it, and it passes on when the holder stops renewing it.

As in client-go, a process compares no clocks with others: it takes over when it has seen no renewal for the lease's
duration by its own monotonic clock. Each write carries the version that was read, so that two processes cannot both
succeed.

Contract: `try_to_hold` returns True when it has written this process as the holder, and False when it has seen another
holder. A write that the server refuses, because the lease has changed since it was read, says nothing about the holder:
the lease is read and written once more. `ApiError` passes through: then nobody knows whether the lease was written.
`look` only reads. `release` gives the lock back at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tutti.client.api_client import ApiClient
from tutti.client.event_recorder import micro_time
from tutti.client.resources import LEASES
from tutti.exceptions import ApiError


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


class LeaseLock:
    """See the module's docstring; `duration` is in seconds, `wall` returns microseconds for the object's times."""

    def __init__(
        self,
        client: ApiClient,
        lease: str,
        *,
        identity: str,
        duration: int,
        monotonic: Callable[[], float],
        wall: Callable[[], int],
    ) -> None:
        self._client, self._lease, self._identity, self._duration = client, lease, identity, duration
        self._monotonic, self._wall = monotonic, wall
        self._seen: tuple[_Spec, float] | None = None
        """The lease as it was last seen to change, and when."""
        self.holder = ""
        """Who held the lock when it was last read."""
        self._free: tuple[str | None, float] | None = None
        """The version of the lease since which nobody has held it, and when that was first seen."""

    @property
    def free_since(self) -> float | None:
        """Since when nobody has held the lock, or nobody did until this process; None if that is not known."""
        return self._free[1] if self._free is not None else None

    async def look(self, timeout: float) -> None:
        """Read who holds the lock."""
        self._note(await self._read(timeout))

    async def try_to_hold(self, timeout: float) -> bool:
        """Take or renew the lock if nobody else holds it; return whether this process holds it."""
        try:
            return await self._try_once(timeout)
        except ApiError as error:
            if error.status != 409:
                raise
        return await self._try_once(timeout)

    async def release(self, timeout: float) -> None:
        """Give the lock back if this process holds it."""
        try:
            await self._release_once(timeout)
        except ApiError as error:
            if error.status != 409:
                raise
            await self._release_once(timeout)

    async def _try_once(self, timeout: float) -> bool:
        found = await self._read(timeout)
        self._note(found)
        if found is None:
            await self._write(None, _Spec(), timeout)
            return True
        spec = found.spec
        if self._seen is None or self._seen[0] != spec:
            self._seen = spec, self._monotonic()
        if self.holder not in ("", self._identity):
            duration = max(spec.lease_duration_seconds or 0, self._duration)
            if self._monotonic() < self._seen[1] + duration:
                return False
        await self._write(found.metadata.resource_version, spec, timeout)
        return True

    def _note(self, found: _Lease | None) -> None:
        """Note who holds the lock."""
        self.holder = (found.spec.holder_identity or "") if found is not None else ""
        version = found.metadata.resource_version if found is not None else None
        if self.holder:
            self._free = None
        elif self._free is None or self._free[0] != version:
            self._free = version, self._monotonic()

    async def _release_once(self, timeout: float) -> None:
        found = await self._read(timeout)
        if found is not None and found.spec.holder_identity == self._identity:
            spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": found.spec.lease_transitions}
            await self._put(found.metadata.resource_version, spec, timeout)

    async def _read(self, timeout: float) -> _Lease | None:
        namespace, _, name = self._lease.partition("/")
        try:
            data = await self._client.request("GET", LEASES.path(namespace, name), timeout=timeout)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        try:
            return msgspec.json.decode(data, type=_Lease)
        except msgspec.DecodeError as error:
            raise ApiError(f"{self._lease}: not a Lease: {error}") from None

    async def _write(self, version: str | None, spec: _Spec, timeout: float) -> None:
        """Write this process as the holder."""
        now = self._wall()
        is_ours = spec.holder_identity == self._identity
        transitions = spec.lease_transitions or 0
        new = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration,
            "acquireTime": spec.acquire_time if is_ours and spec.acquire_time else micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": transitions if is_ours or version is None else transitions + 1,
        }
        await self._put(version, new, timeout)
        self.holder = self._identity

    async def _put(self, version: str | None, spec: dict[str, Any], timeout: float) -> None:
        namespace, _, name = self._lease.partition("/")
        metadata = {"name": name, "namespace": namespace}
        if version is not None:
            metadata["resourceVersion"] = version
        body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": spec}
        method, path = (
            ("PUT", LEASES.path(namespace, name)) if version is not None else ("POST", LEASES.path(namespace))
        )
        await self._client.request(method, path, msgspec.json.encode(body), timeout=timeout)
