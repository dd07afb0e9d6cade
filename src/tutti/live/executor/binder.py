"""The binder: sends the bindings of plans, many at once, and says what became of each.

| the server answers | what follows |
|---|---|
| success | the pod is bound; an event says so |
| 429, 5xx, or nothing | the binding is sent again for some seconds: one that was applied answers 409 |
| 403, no right to bind | the same: a server that has just started knows no rights |
| 409 or 404 | the pod is read: on the planned node it is bound; if it still waits, the binding is sent again |
| anything else | the binding is refused, the pod is told why and avoids the node |

A refused binding goes to the inbox, and the next session plans the pod again. The pod avoids the node only after such
an answer about this binding, or if a provisioner found no room there: where newer reports speak against a binding, the
next session has them too, because they are in the inbox already. When only lost answers came, the pod is
read until the server answers, because a binding that is taken back and was applied books its node twice. Before each
binding the newest reports about pod, node and group are looked at, and whether this process still leads. A binding
that waits for another attempt makes room for others: the server may ask for a whole second.

Contract: `submit` never waits. Bindings start in the order in which they were submitted. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tutti.client.access.missing_rights import is_missing_right
from tutti.client.api_client import ApiClient
from tutti.client.backoff import Backoff
from tutti.client.pod_writes import PodWrites
from tutti.cluster.edits import Put
from tutti.engine.session.plan import Bound
from tutti.exceptions import ApiError, InputError
from tutti.live.background_tasks import BackgroundTasks
from tutti.live.executor.gang_binding import GangBinding
from tutti.live.executor.pod_reader import read_pod
from tutti.live.executor.request_window import RequestWindow
from tutti.live.executor.volume_binder import VolumeBinder
from tutti.live.inbox import Inbox, RefusedBinding
from tutti.live.leadership import WritePermission
from tutti.live.newest_objects import NewestObjects

_TRANSIENT = frozenset((0, 408, 429, 500, 502, 503, 504))
_READ_FIRST = frozenset((404, 409))
"""Statuses after which the pod is read: it may be bound, gone, or have been changed at the same moment."""
_OVERLOADED = frozenset((0, 429, 503, 504))
_RETRY_FOR = 4.0
"""Seconds for which a binding is sent again."""
_PAUSE_AT_STOP = 1.0
"""The longest wait in seconds before another attempt while the process stops."""
_MAX_PAUSING = 64
"""How many bindings may wait for another attempt before no other is begun: the server is overloaded, or broken."""


class _Job(NamedTuple):
    bound: Bound
    gang: GangBinding | None


class PodBinder:
    """See the module's docstring.

    `settle` waits until no other write to a pod is under way; `on_bound` is told of every pod that is bound, and
    `on_refused` of every pod that the server does not let us bind, with the server's message.
    """

    def __init__(
        self,
        client: ApiClient,
        inbox: Inbox,
        newest: NewestObjects,
        *,
        permission: WritePermission,
        window: RequestWindow,
        volumes: VolumeBinder,
        settle: Callable[[str], asyncio.Future[None] | None],
        on_bound: Callable[[Bound], None],
        on_refused: Callable[[Bound, str], None],
        monotonic: Callable[[], float],
        draw: random.Random,
    ) -> None:
        self._client, self._inbox, self._newest = client, inbox, newest
        self._writes, self._permission, self._window = PodWrites(client), permission, window
        self._volumes, self._settle, self._on_bound, self._on_refused = volumes, settle, on_bound, on_refused
        self._monotonic, self._draw = monotonic, draw
        self.tasks = BackgroundTasks()
        self._preparing: dict[asyncio.Task[None], tuple[_Job, ...]] = {}
        """Pods whose volumes are being bound."""
        self._jobs: deque[_Job] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._pausing = 0
        """How many workers wait before another attempt."""
        self._idle = asyncio.Event()
        self._idle.set()
        self.in_flight: dict[str, Bound] = {}
        """Bindings that are under way, by pod."""
        self.bound_count = self.refused_count = 0
        self.errors: Counter[int] = Counter()
        """Requests that failed, by HTTP status; 0: no answer."""
        self._stopping = asyncio.Event()

    @property
    def _sending(self) -> int:
        return len(self._workers) - self._pausing

    @property
    def window_width(self) -> int:
        """How many bindings may be in flight."""
        return self._window.width

    @property
    def waiting(self) -> int:
        """How many bindings are not answered yet."""
        return len(self._jobs) + len(self.in_flight) + sum(map(len, self._preparing.values()))

    def submit(self, binds: Iterable[Bound]) -> None:
        """Send the bindings of a plan; those of a gang stay together."""
        gangs: dict[str, list[Bound]] = {}
        units: list[Bound | str] = []
        for bound in binds:
            if bound.gang is None:
                units.append(bound)
            elif bound.gang in gangs:
                gangs[bound.gang].append(bound)
            else:
                gangs[bound.gang] = [bound]
                units.append(bound.gang)
        for unit in units:
            if isinstance(unit, Bound):
                self._add((_Job(unit, None),))
            else:
                gang = GangBinding(unit, gangs[unit], self._problem)
                self._add(tuple(_Job(bound, gang) for bound in gang.binds))
        self._start_workers()

    def _add(self, jobs: tuple[_Job, ...]) -> None:
        """Add pods that are bound together, after their volumes."""
        if not any(job.bound.volumes for job in jobs):
            self._jobs.extend(jobs)
            return
        task = self.tasks.start(self._bind_volumes(jobs))
        self._preparing[task] = jobs
        task.add_done_callback(self._preparing.pop)

    async def _bind_volumes(self, jobs: tuple[_Job, ...]) -> None:
        problem = await self._volumes.bind(job.bound for job in jobs)
        if problem is None:
            self._jobs.extend(jobs)
            self._start_workers()
            return
        for job in jobs:
            self._refuse(job.bound, problem.message, avoids_node=job.bound.pod == problem.refused_pod)

    async def finish(self) -> None:
        """Stop: bindings of gangs that have begun are sent, others are given up; wait for all answers."""
        self._stopping.set()
        for task in list(self._preparing):
            task.cancel()
        self._start_workers()
        await self._idle.wait()

    async def close(self) -> None:
        """Give up all requests."""
        self._jobs.clear()
        await self.tasks.cancel()

    def _start_workers(self) -> None:
        free = self._window.width - self._sending if self._pausing < _MAX_PAUSING else 0
        for _ in range(min(free, len(self._jobs))):
            self._idle.clear()
            worker = self.tasks.start(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._worker_ended)

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        self._start_workers()  # several may have ended at once because the window has shrunk
        if not self._workers:
            self._idle.set()

    async def _work(self) -> None:
        while self._jobs and self._sending <= self._window.width:
            job = self._jobs.popleft()
            bound, gang = job
            if self._stopping.is_set() and (gang is None or not gang.has_begun):
                continue
            if gang is not None and not gang.begin():
                self._refuse(bound, gang.problem or "")
                continue
            problem = self._problem(bound)
            if problem is not None:
                self._refuse(bound, problem)
                continue
            self.in_flight[bound.pod] = bound
            try:
                await self._bind(bound)
            finally:
                del self.in_flight[bound.pod]

    def _problem(self, bound: Bound) -> str | None:
        """Return why a binding must not be sent by now."""
        if not self._permission.may_write:
            return "this process does not lead any more"
        newest, pod = self._newest, self._newest.pod(bound.pod)
        problem = newest.problem_of_pod(bound.pod, bound.uid)
        if problem is None:
            problem = newest.problem_of_node(bound.node, pod)
        if problem is None and pod is not None and newest.is_group_deleted(pod):
            problem = f"the group {bound.gang} is being deleted"
        return problem

    async def _bind(self, bound: Bound) -> None:
        """Send a binding until the server takes or refuses it."""
        under_way = self._settle(bound.pod)
        if under_way is not None:
            await under_way
        backoff = Backoff(self._draw, first=0.05, longest=1.0)
        give_up = self._monotonic() + _RETRY_FOR
        while True:
            await self._window.pace()
            problem = self._problem(bound)
            if problem is not None:
                await self._decide(bound, problem)
                return
            sent = self._monotonic()
            try:
                await self._writes.bind(
                    bound.pod, bound.uid or "", node=bound.node, timeout=self._permission.write_timeout
                )
            except ApiError as error:
                self.errors[error.status] += 1
                if error.status in _OVERLOADED:
                    self._window.overloaded()
                is_late, lacks_right = self._monotonic() >= give_up, is_missing_right(error)
                if lacks_right and not is_late:
                    await self._pause(backoff.next(error.retry_after))
                    continue
                if error.status not in _TRANSIENT and error.status not in _READ_FIRST:
                    self._refuse(bound, str(error), is_told=True, avoids_node=not lacks_right)
                    return
                if is_late or error.status in _READ_FIRST:
                    waits = await self._decide(bound, str(error), is_told=is_late, is_final=is_late)
                    if not waits:
                        return
                await self._pause(backoff.next(error.retry_after))
                continue
            self._window.answered(self._monotonic() - sent)
            self._note_bound(bound)
            return

    async def _pause(self, seconds: float) -> None:
        """Wait before another attempt, and let another binding use the place in the window meanwhile.

        A process that stops has no time for long waits.
        """
        self._pausing += 1
        self._start_workers()
        try:
            if self._stopping.is_set():
                await asyncio.sleep(min(seconds, _PAUSE_AT_STOP))
            else:
                await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._pausing -= 1

    def _note_bound(self, bound: Bound) -> None:
        self.bound_count += 1
        self._on_bound(bound)

    async def _decide(self, bound: Bound, problem: str, *, is_told: bool = False, is_final: bool = True) -> bool:
        """Read a pod until the server answers: on the planned node it is bound, otherwise the binding is refused.

        Return whether the pod still waits and nothing speaks against another attempt; never if this is final.
        """
        backoff = Backoff(self._draw, first=0.1, longest=2.0)
        while True:
            known = self._newest.pod(bound.pod)
            if known is None or known.metadata.uid != bound.uid:
                return False  # the watch has reported that the pod is gone
            try:
                pod = known if known.spec.node_name else await read_pod(self._client, bound.pod, timeout=5.0)
            except ApiError:
                if self._stopping.is_set():
                    return False  # nobody plans any more, and the server may be away for long
                await asyncio.sleep(backoff.next())
                continue
            except InputError as error:
                self._refuse(bound, str(error))
                return False
            break
        if pod is None or pod.metadata.uid != bound.uid:
            return False  # the watch will report it
        if not is_final and not (pod.spec.node_name or pod.spec.scheduling_gates or pod.metadata.deletion_timestamp):
            return True
        self._inbox.put((Put(pod),))
        if pod.spec.node_name == bound.node:
            self._note_bound(bound)
        else:
            self._refuse(bound, problem, is_told=is_told and not pod.spec.node_name)
        return False

    def _refuse(self, bound: Bound, problem: str, *, is_told: bool = False, avoids_node: bool = False) -> None:
        self.refused_count += 1
        avoids_node = avoids_node or self._newest.is_node_deleted(bound.node)
        if is_told:
            self._on_refused(bound, problem)
        self._inbox.put((RefusedBinding(bound.pod, bound.uid, bound.node, problem, avoids_node),))
