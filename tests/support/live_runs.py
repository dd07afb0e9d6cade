"""Whole runs of the live scheduler against an API server in memory.

`play` runs a scene: an async function of a `LiveRun`, which starts schedulers, makes nodes and pods, and waits for
conditions. Nothing waits for a fixed time; a condition that is not met within `PATIENCE` fails the test.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from tests.support import builders, documents
from tests.support.builders import COSCHEDULING_LABEL
from tests.support.memory_api_server import MemoryApiServer
from tests.support.memory_objects import Document, key_of
from tutti.cluster.edits import Remove
from tutti.engine.placement.profile import Profile
from tutti.engine.session.policy import Policy
from tutti.kube.times import timestamp
from tutti.live.options import LeaseOptions, SchedulerOptions
from tutti.live.scheduler import LiveScheduler

PATIENCE = 60.0
"""Seconds after which a condition is not expected any more: only a hang takes so long."""
_QUICK = {
    "first_backoff": 50_000,
    "longest_backoff": 200_000,
    "partial_for": 500_000,
    "counted_quiet_for": 100_000,
    "avoided_for": 500_000,
}
"""Times of a scheduler that make short tests, in microseconds."""
LEASE = LeaseOptions(retry_period=0.3)


class ShiftedClock:
    """The clock of this machine, which a test can put forward or back."""

    def __init__(self) -> None:
        self.ahead = 0.0
        """Seconds."""

    def monotonic(self) -> float:
        """Return seconds."""
        return time.monotonic() + self.ahead

    def wall(self) -> int:
        """Return microseconds since 1970."""
        return int((time.time() + self.ahead) * 1_000_000)


class LiveRun:
    """A server and its schedulers; see the module's docstring."""

    def __init__(self, server: MemoryApiServer) -> None:
        self.server, self.objects = server, server.objects
        self._tasks: dict[str, asyncio.Task[bool]] = {}

    # Schedulers -------------------------------------------------------------------------------------------------------

    def start(self, identity: str = "one", *, clock: ShiftedClock | None = None, **options: Any) -> LiveScheduler:
        """Start a scheduler; without a lease unless `lease` is given."""
        clock = clock or ShiftedClock()
        options = {"lease": None, "policy": quick_policy(), "rediscover_every": 30.0, **options}
        scheduler = LiveScheduler(
            self.server.access,
            SchedulerOptions(identity=identity, **options),
            profile=Profile.default()._replace(scheduler_name="tutti"),
            monotonic=clock.monotonic,
            wall=clock.wall,
            draw=random.Random(1),
        )
        self._tasks[identity] = asyncio.create_task(scheduler.run())
        return scheduler

    async def started(self, identity: str = "one", **options: Any) -> LiveScheduler:
        """Start a scheduler, and wait until it has had its first session."""
        scheduler = self.start(identity, **options)
        await self.until(lambda: scheduler.sessions.sessions > 0, "the first session")
        return scheduler

    async def ended(self, identity: str = "one") -> bool:
        """Wait until a scheduler has ended; return what its run returned."""
        return await asyncio.wait_for(self._tasks.pop(identity), PATIENCE)

    async def kill(self, identity: str = "one") -> None:
        """End a scheduler as kill -9 does: nothing that it sends from now on arrives."""
        self.server.silence(f"({identity})")
        task = self._tasks.pop(identity)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """End all schedulers."""
        for identity in list(self._tasks):
            await self.kill(identity)

    # Objects ----------------------------------------------------------------------------------------------------------

    def add_nodes(self, *names: str, **how: Any) -> None:
        """Make nodes."""
        for name in names:
            self.objects.create(builders.node(name, **how))

    def add_pods(self, *names: str, finalizers: Sequence[str] = (), **how: Any) -> list[str]:
        """Make pods for the scheduler, and return their keys."""
        for name in names:
            given = {"schedulerName": "tutti", "tolerations": builders.DEFAULT_TOLERATIONS, **how}
            made = documents.document(builders.pod(name, **given))
            if finalizers:
                made["metadata"]["finalizers"] = list(finalizers)
            self.objects.create(made, "Pod")
        return [f"{how.get('namespace', 'default')}/{name}" for name in names]

    def add_gang(self, name: str, count: int, *, minimum: int | None = None, **how: Any) -> list[str]:
        """Make a group of the coscheduling plugin with its pods, and return their keys."""
        self.add_group(name, count if minimum is None else minimum)
        return self.add_members(name, range(count), **how)

    def add_group(self, name: str, minimum: int) -> None:
        """Make a group of the coscheduling plugin."""
        self.objects.create(builders.pod_group(name, minimum))

    def add_members(self, gang: str, numbers: Iterable[int], **how: Any) -> list[str]:
        """Make pods of a gang, and return their keys."""
        return self.add_pods(*(f"{gang}-{n}" for n in numbers), labels={COSCHEDULING_LABEL: gang}, **how)

    def pod(self, key: str) -> Document:
        """Return a pod."""
        return self.objects.get("Pod", key)

    def node_of(self, key: str) -> str:
        """Return the node of a pod; empty if it has none or is gone."""
        pod = self.objects.find("Pod", key)
        return str((pod or {}).get("spec", {}).get("nodeName") or "")

    def bound(self, keys: Iterable[str] | None = None) -> set[str]:
        """Return the pods that have a node, of all or of some."""
        return {key for key in (map(key_of, self.objects.all("Pod")) if keys is None else keys) if self.node_of(key)}

    def condition(self, key: str, kind: str = "PodScheduled") -> Document:
        """Return a condition of a pod; empty if it has none."""
        conditions = (self.pod(key).get("status") or {}).get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    def events(self, reason: str = "") -> list[tuple[str, str]]:
        """Return the names of the objects and the notes of all events with a reason."""
        events = [each for each in self.objects.all("Event") if reason in ("", each["reason"])]
        return [(each["regarding"]["name"], each["note"]) for each in events]

    def run_pods(self, keys: Iterable[str]) -> None:
        """Start pods, as a kubelet does."""
        for key in keys:
            status = {"phase": "Running", "startTime": timestamp(self.objects.now())}
            self.objects.patch("Pod", key, {"status": status})

    def fail_pod(self, key: str, reason: str) -> None:
        """Refuse a pod, as a kubelet does."""
        self.objects.patch("Pod", key, {"status": {"phase": "Failed", "reason": reason}})

    def bound_counts(self, keys: Iterable[str]) -> list[int]:
        """Return how many of some pods had a node, after each change of the history."""
        wanted, nodes, counts = set(keys), set[str](), [0]
        for change in self.objects.changes_of("Pod"):
            if change.key in wanted:
                is_bound = change.type != "DELETED" and change.obj["spec"].get("nodeName")
                nodes = nodes | {change.key} if is_bound else nodes - {change.key}
                counts.append(len(nodes))
        return counts

    # Waiting ----------------------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], Any], what: str = "the condition") -> None:
        """Wait until a condition is met; fail if a scheduler breaks or the time is over."""
        give_up = time.monotonic() + PATIENCE
        while not condition():
            for identity, task in self._tasks.items():
                if task.done() and not task.cancelled() and task.exception() is not None:
                    raise AssertionError(f"scheduler {identity} broke") from task.exception()
            assert time.monotonic() < give_up, f"not met in time: {what}"
            await asyncio.sleep(0.005)

    async def until_bound(self, keys: Iterable[str]) -> None:
        """Wait until pods have nodes."""
        keys = list(keys)
        await self.until(lambda: len(self.bound(keys)) == len(keys), f"all of {keys} are bound")

    async def until_quiet(self, scheduler: LiveScheduler) -> None:
        """Wait until a scheduler has seen all pods and nodes, has had a session since, and has nothing to send."""
        await self.until(lambda: self._has_seen_all(scheduler), "the watches have caught up")
        last = scheduler.sessions.sessions + 2  # the session that runs by now may not have seen everything

        def is_quiet() -> bool:
            if scheduler.sessions.sessions < last:
                scheduler.inbox.put((Remove("Pod", "none/none", "none"),))  # needs a session, and changes nothing
                return False
            requests = scheduler.binder.waiting + scheduler.victims.waiting + scheduler.statuses.waiting
            return not requests and not scheduler.events.waiting

        await self.until(is_quiet, "nothing is under way")

    def _has_seen_all(self, scheduler: LiveScheduler) -> bool:
        for kind, find in (("Pod", scheduler.newest.pod), ("Node", scheduler.newest.node)):
            for obj in self.objects.all(kind):
                if (obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                    known = find(key_of(obj))
                    if known is None or known.metadata.resource_version != obj["metadata"]["resourceVersion"]:
                        return False
        return True


def quick_policy(queueing: Any = "reservation", **times: int) -> Policy:
    """Return the policy of a live scheduler with short times, or those that are given, in microseconds."""
    policy = SchedulerOptions().policy
    assert policy.patience is not None
    return replace(policy, patience=replace(policy.patience, **_QUICK | times), queueing=queueing)


def play(scene: Callable[[LiveRun], Awaitable[None]], *, without: tuple[str, ...] = ()) -> None:
    """Run a scene."""

    async def run() -> None:
        async with MemoryApiServer(without=without) as server:
            live_run = LiveRun(server)
            try:
                await asyncio.wait_for(scene(live_run), 2 * PATIENCE)
            finally:
                await live_run.close()

    asyncio.run(run())
