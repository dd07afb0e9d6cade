"""The workload of a soak run: gangs that come and go on a full cluster, drawn from a seed.

Each gang is a group object and a ReplicaSet with as many pods as the gang's minimum, so that the controller manager
replaces pods that are evicted. Demand stays at a multiple of the capacity. A gang is deleted some time after it has all
its pods, a few gangs at any moment of their life. Priorities differ, so that gangs are preempted.

Contract: the same seed gives the same gangs in the same order; how long each waits depends on the scheduler. Every gang
is recorded before it is created, and again before it is deleted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable

import msgspec

from tests.controlplane.faults import gang_objects as objects
from tests.controlplane.faults.checks.history import GangChange, Record
from tests.controlplane.faults.direct_client import DirectClient
from tests.controlplane.faults.watch_recorder import WatchRecorder

_TICK = 0.5
_MAX_NEW_GANGS = 3
"""Gangs that are created in one tick at most."""


class WorkloadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the world."""

    dialect: str = "native"
    scheduler_name: str = "tutti"
    nodes: int = 20
    node_cpu: int = 8_000
    """Millicores of a node."""
    demand: float = 1.5
    """CPU that all gangs request, as a multiple of the nodes' CPU."""
    sizes: tuple[int, int] = (2, 8)
    pod_cpus: tuple[int, ...] = (500, 1_000, 2_000)
    priorities: tuple[tuple[str, float], ...] = (("low", 0.6), ("middle", 0.3), ("high", 0.1))
    lifetime: tuple[float, float] = (20.0, 60.0)
    """Seconds from the last bind of a gang to its deletion."""
    early_share: float = 0.05
    """The share of gangs that are deleted within seconds, whatever their state."""


class _Gang(msgspec.Struct):
    name: str
    size: int
    cpu: int
    lifetime: float
    delete_at: float | None


class Workload:
    """See the module's docstring."""

    def __init__(
        self,
        client: DirectClient,
        recorder: WatchRecorder,
        settings: WorkloadSettings,
        *,
        seed: int,
        record: Callable[[Record], None],
    ) -> None:
        self._client, self._recorder, self.settings, self._record = client, recorder, settings, record
        self._draw = random.Random(f"workload {seed}")
        self._gangs: dict[str, _Gang] = {}
        self.created = self.deleted = 0

    async def set_up(self) -> None:
        """Create priorities, the kinds of the dialect, and nodes; return when the nodes are ready."""
        for document in objects.setup_objects(self.settings.dialect):
            await self._create(document)
        for number in range(self.settings.nodes):
            await self._create(objects.node(f"node-{number:02}", self.settings.node_cpu))
        await self._nodes_ready()

    async def run(self) -> None:
        """Create and delete gangs until cancelled."""
        while True:
            await self._delete_due()
            for _ in range(_MAX_NEW_GANGS):
                demand = sum(gang.size * gang.cpu for gang in self._gangs.values())
                if demand >= self.settings.demand * self.settings.nodes * self.settings.node_cpu:
                    break
                await self._create_gang()
            await asyncio.sleep(_TICK)

    async def _create_gang(self) -> None:
        draw, settings = self._draw, self.settings
        self.created += 1
        name = f"gang-{self.created:04}"
        names, weights = zip(*settings.priorities, strict=True)
        priority = draw.choices(names, weights)[0]
        lifetime = draw.uniform(*settings.lifetime)
        is_early, early = draw.random() < settings.early_share, draw.uniform(0.0, 10.0)
        delete_at = time.monotonic() + early if is_early else None
        gang = _Gang(name, draw.randint(*settings.sizes), draw.choice(settings.pod_cpus), lifetime, delete_at)
        self._gangs[name] = gang
        self._record(GangChange(time.time(), name, gang.size, objects.PRIORITIES[priority]))
        for document in objects.gang(
            name,
            size=gang.size,
            cpu=gang.cpu,
            priority=priority,
            dialect=settings.dialect,
            scheduler_name=settings.scheduler_name,
        ):
            await self._create(document)

    async def _delete_due(self) -> None:
        running = Counter(pod.gang for pod in self._recorder.pods.values() if pod.is_running and not pod.deleting)
        now = time.monotonic()
        for gang in list(self._gangs.values()):
            if gang.delete_at is None and running[gang.name] >= gang.size:
                gang.delete_at = now + gang.lifetime
            if gang.delete_at is not None and gang.delete_at <= now:
                del self._gangs[gang.name]
                self.deleted += 1
                self._record(GangChange(time.time(), gang.name, gang.size, ended=True))
                for path in objects.gang_paths(gang.name, self.settings.dialect):
                    await self._client.send("DELETE", path, {"propagationPolicy": "Background"})

    async def _create(self, document: objects.Document) -> None:
        await self._client.send("POST", objects.collection(document), document)

    async def _nodes_ready(self) -> None:
        """Wait until kwok has made the nodes ready and the controller manager has removed their taints."""
        while True:
            listed = await self._client.send("GET", "/api/v1/nodes")
            assert listed is not None
            ready = [node for node in listed["items"] if objects.is_ready_node(node)]
            if len(ready) >= self.settings.nodes:
                return
            await asyncio.sleep(0.2)
