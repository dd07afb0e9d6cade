"""Disturbances of the scheduler's processes: kill -9, freezes of the leader, partitions of one replica.

Some kills come right after a bind, so that they meet gangs of which only a part is bound; the others come at random
moments. A freeze lasts longer than the lease, so that the other replica takes over and the old leader wakes up
believing that it leads.

Contract: all moments and targets are drawn from a seed. `run` disturbs until it is cancelled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import msgspec

from tests.controlplane.faults.proxy_process import ProxyProcess
from tests.controlplane.faults.replicas import Replicas
from tests.controlplane.faults.watch_recorder import WatchRecorder

_RESTART_EVERY = 0.5
_LEADER_SHARE = 0.3
"""The share of kills and partitions that aim at the leader; the others meet any replica."""


class DisturbanceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Mean seconds between disturbances; zero means never."""

    kill_every: float = 12.0
    freeze_every: float = 45.0
    partition_every: float = 30.0
    after_bind_share: float = 0.5
    """The share of kills that wait for a bind."""
    lease: float = 15.0
    """The duration of the scheduler's lease."""


class Disturbances:
    """See the module's docstring; `leader` returns the number of the replica that leads."""

    def __init__(
        self,
        replicas: Replicas,
        proxy: ProxyProcess,
        recorder: WatchRecorder,
        settings: DisturbanceSettings,
        *,
        leader: Callable[[], int | None],
        seed: int,
    ) -> None:
        self._replicas, self._proxy, self._recorder, self._settings = replicas, proxy, recorder, settings
        self._leader, self._seed = leader, seed

    async def run(self) -> None:
        """Disturb and restart until cancelled."""
        settings = self._settings
        loops = [self._restart()]
        if settings.kill_every:
            loops.append(self._kill(random.Random(f"kill {self._seed}")))
        if settings.freeze_every and self._replicas.count > 1:
            loops.append(self._freeze(random.Random(f"freeze {self._seed}")))
        if settings.partition_every:
            loops.append(self._partition(random.Random(f"partition {self._seed}")))
        async with asyncio.TaskGroup() as group:
            for loop in loops:
                group.create_task(loop)

    async def _restart(self) -> None:
        while True:
            self._replicas.restart_dead()
            await asyncio.sleep(_RESTART_EVERY)

    async def _kill(self, draw: random.Random) -> None:
        while True:
            await asyncio.sleep(self._settings.kill_every * draw.uniform(0.5, 1.5))
            replica, after_bind = self._target(draw), draw.random() < self._settings.after_bind_share
            if after_bind:
                await self._next_bind()
            self._replicas.kill(replica)

    async def _freeze(self, draw: random.Random) -> None:
        while True:
            await asyncio.sleep(self._settings.freeze_every * draw.uniform(0.5, 1.5))
            replica = self._leader()
            if replica is not None:
                self._replicas.freeze(replica)
                await asyncio.sleep(self._settings.lease + draw.uniform(1.0, 4.0))
                self._replicas.thaw(replica)

    async def _partition(self, draw: random.Random) -> None:
        while True:
            await asyncio.sleep(self._settings.partition_every * draw.uniform(0.5, 1.5))
            is_long = draw.random() < 0.2
            seconds = self._settings.lease + 2.0 if is_long else draw.uniform(1.0, 6.0)
            self._proxy.partition(self._target(draw), seconds)
            await asyncio.sleep(seconds)

    def _target(self, draw: random.Random) -> int:
        leader, any_replica = self._leader(), draw.randrange(self._replicas.count)
        return leader if leader is not None and draw.random() < _LEADER_SHARE else any_replica

    async def _next_bind(self) -> None:
        """Wait until a pod is bound, for some seconds at most."""
        binds = self._recorder.binds
        try:
            async with asyncio.timeout(5), self._recorder.changed:
                await self._recorder.changed.wait_for(lambda: self._recorder.binds > binds)
        except TimeoutError:
            return
