"""The process of the live scheduler: starts all parts, and ends them in order.

Contract: `run` returns when the scheduler has ended, with whether that was asked for. After `stop`, gangs that were
begun are finished, events are written for a few seconds, and the lease is given back, all within 25 seconds. A lease is
given back only if every write has its answer; otherwise it expires. A lost lease ends the process as well. So does an
unexpected error of any part, or a minute without news of pods or nodes, which `run` raises. Whoever restarts the
process gets a new one that reads everything from the server. Nothing is kept anywhere else.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tutti import __version__
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.client.event_recorder import EventRecorder
from tutti.client.reflector import Change
from tutti.cluster.edits import Remove
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import Bound, Eviction
from tutti.engine.session.policy import Patience
from tutti.exceptions import ApiError
from tutti.kube.objects import CoschedulingPodGroup, Pod, PodGroup
from tutti.live.executor.binder import PodBinder
from tutti.live.executor.evictions.overdue_victims import OverdueVictims
from tutti.live.executor.evictions.refused_evictions import RefusedEvictions
from tutti.live.executor.evictions.victim_requests import VictimRequests
from tutti.live.executor.groups.coscheduling_status import CoschedulingStatusWriter
from tutti.live.executor.groups.native_status import NativeStatusWriter
from tutti.live.executor.plan_executor import (
    PlanExecutor,
    record_bound,
    record_evicted,
    refused_binding,
    tell_waiting,
)
from tutti.live.executor.rejected_pods import RejectedPods
from tutti.live.executor.request_window import RequestWindow
from tutti.live.executor.shadow_executor import ShadowExecutor
from tutti.live.executor.status_writer import StatusWriter
from tutti.live.executor.volume_binder import VolumeBinder
from tutti.live.inbox import Inbox
from tutti.live.introspection.introspection import Introspection
from tutti.live.introspection.scheduler_metrics import SchedulerMetrics
from tutti.live.leadership import AlwaysLeads, Leadership
from tutti.live.newest_objects import NewestObjects
from tutti.live.options import SchedulerOptions
from tutti.live.session_loop import SessionLoop
from tutti.live.session_recorder import SessionRecorder
from tutti.live.watched_cluster import SessionResult, WatchedCluster
from tutti.live.watches import Watches

_LOG = logging.getLogger("tutti.live")
_GARBAGE_THRESHOLDS = 10_000, 20, 50
"""Requests leave little cyclic garbage, and looking for it among the objects of a cluster takes long."""
_HEARTBEAT = 0.5
"""Seconds between two signs of life of the event loop."""
_BLIND_FOR = 60.0
"""Seconds for which a process leads without news of pods or nodes."""
_WRITES_GRACE = 10.0
"""Seconds to finish gangs and to wait for answers before the process ends."""
_EVENTS_GRACE = 5.0
"""Seconds to write events before the process ends."""
_SESSION_GRACE = 2.0
"""Seconds to wait for the session thread before the process ends."""


class LiveScheduler:
    """See the module's docstring; `monotonic` returns seconds, `wall` microseconds since 1970."""

    def __init__(
        self,
        access: ClusterAccess,
        options: SchedulerOptions,
        *,
        profile: Profile,
        monotonic: Callable[[], float],
        wall: Callable[[], int],
        draw: random.Random,
    ) -> None:
        self._access, self.options = access, options
        self._monotonic, self._wall, self._draw = monotonic, wall, draw
        self.client = self._new_client(connections=200)
        self.now = self.client.clock.now
        self.inbox, self.newest = Inbox(), NewestObjects()
        self.metrics = SchedulerMetrics(
            options.scheduler_name, preempts=options.policy.preemption, monotonic=monotonic, started=wall()
        )
        self.watches = Watches(
            self.client,
            self._report,
            monotonic=monotonic,
            draw=draw,
            rediscover_every=options.rediscover_every,
            # A process that finds the lease free and lists then need not list again when it has taken the lease.
            may_list=lambda: self.leadership.has_looked,
        )
        self.cluster = WatchedCluster(profile, options.policy, recorder=self._new_recorder())
        self._heart = monotonic()
        self.leadership = self._new_leadership()
        self.events = EventRecorder(
            self.client,
            controller=options.scheduler_name,
            instance=options.identity,
            now=self.now,
            draw=draw,
            is_busy=lambda: self.binder.waiting > 0,
        )
        self.statuses = StatusWriter(
            self.client, self.newest, now=self.now, may_write=lambda: self.leadership.may_write
        )
        self._tell = tell_waiting(self.statuses, self.events, self.newest)
        self._refused_evictions = RefusedEvictions(self.newest, self._tell)
        self.overdue = OverdueVictims(
            self.newest,
            self.events,
            scheduler_name=options.scheduler_name,
            leaves_within=(options.policy.patience or Patience()).leaves_within,
            may_write=lambda: self._is_scheduling and self.leadership.may_write,
            now=self.now,
        )
        self.rejected = RejectedPods(
            self.newest,
            self.events,
            scheduler_name=options.scheduler_name,
            may_write=lambda: not options.dry_run and self.leadership.may_write,
        )
        self.binder = self._new_binder()
        self.victims = self._new_victim_requests()
        self.groups = self._new_group_writers()
        self._shadow = ShadowExecutor(self.inbox, on_bound=self.metrics.note_bound, monotonic=monotonic)
        self._executor = PlanExecutor(
            self.binder,
            self.victims,
            statuses=self.statuses,
            groups=self.groups,
            refused_evictions=self._refused_evictions,
            overdue=self.overdue,
            tell=self._tell,
            events=self.events,
            newest=self.newest,
        )
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="session")
        self.sessions = SessionLoop(
            self.cluster,
            self.inbox,
            worker=self._worker,
            may_schedule=lambda: self._is_scheduling and self.leadership.may_write,
            carry_out=self._carry_out,
            now=self.now,
            monotonic=monotonic,
            gather=options.gather,
        )
        self.introspection = Introspection(self, self.metrics, worker=self._worker, monotonic=monotonic)
        self._is_scheduling = False
        """Whether everything is listed, and this process leads or did so until now."""
        self._stopping = asyncio.Event()

    def _new_client(self, connections: int = 4) -> ApiClient:
        return ApiClient(
            self._access,
            user_agent=f"{self.options.scheduler_name}-scheduler/{__version__} ({self.options.identity})",
            monotonic=self._monotonic,
            wall=self._wall,
            draw=self._draw,
            connections=connections,
        )

    def _new_recorder(self) -> SessionRecorder | None:
        options = self.options
        if options.record is None:
            return None
        return SessionRecorder(
            options.record, scheduler_name=options.scheduler_name, now=self._wall, profile=options.profile_name
        )

    def _new_leadership(self) -> Leadership | AlwaysLeads:
        if self.options.lease is None or self.options.dry_run:
            return AlwaysLeads()
        return Leadership(
            self._new_client,
            self.options.lease,
            identity=self.options.identity,
            heartbeat=lambda: self._heart,
            monotonic=self._monotonic,
            wall=self._wall,
        )

    def _new_binder(self) -> PodBinder:
        options, monotonic = self.options, self._monotonic
        return PodBinder(
            self.client,
            self.inbox,
            self.newest,
            permission=self.leadership,
            window=RequestWindow(first=16, most=options.max_in_flight, monotonic=monotonic, max_qps=options.max_qps),
            volumes=VolumeBinder(
                self.client,
                self.newest,
                may_write=lambda: self.leadership.may_write,
                monotonic=monotonic,
                draw=self._draw,
            ),
            settle=self.statuses.settle,
            on_bound=self._note_bound,
            on_refused=lambda bound, problem: self._tell(refused_binding(bound, problem)),
            monotonic=monotonic,
            draw=self._draw,
        )

    def _new_group_writers(self) -> tuple[NativeStatusWriter, CoschedulingStatusWriter]:
        native = NativeStatusWriter(
            self.client,
            self.newest,
            scheduler_name=self.options.scheduler_name,
            resource=lambda: self.watches.resource(PodGroup.KIND),
            may_write=lambda: self.leadership.may_write,
            now=self.now,
        )
        coscheduling = CoschedulingStatusWriter(
            self.client,
            manager=f"{self.options.scheduler_name}-scheduler",
            resource=lambda: self.watches.resource(CoschedulingPodGroup.KIND),
            may_write=lambda: self.leadership.may_write,
            is_busy=lambda: self.binder.waiting > 0,
            now=self.now,
            left_for=self.options.groups_left_for,
        )
        return native, coscheduling

    def _new_victim_requests(self) -> VictimRequests:
        return VictimRequests(
            self.client,
            self.inbox,
            self.newest,
            scheduler_name=self.options.scheduler_name,
            respects_budgets=self.options.policy.victims_allowed.hard_budgets,
            permission=self.leadership,
            on_evicted=self._note_evicted,
            on_refused=self._refused_evictions.note_refused,
            now=self.now,
            monotonic=self._monotonic,
            draw=self._draw,
        )

    def _report(self, changes: list[Change]) -> None:
        self.rejected.observe(changes)
        self.newest.observe(changes)
        self.overdue.observe(changes)
        self.metrics.arrivals.observe(changes)
        self.inbox.put(changes)
        for change in changes:
            if isinstance(change, Remove) and change.kind == Pod.KIND:
                self.statuses.forget(change.uid or "")
                for group in self.groups:
                    group.note_gone(change.key)

    def _note_bound(self, bound: Bound) -> None:
        self.statuses.forget(bound.uid or "")
        self.metrics.note_bound(bound)
        record_bound(self.events, self.newest, bound)
        for group in self.groups:
            group.note_bound(bound)

    def _note_evicted(self, eviction: Eviction) -> None:
        record_evicted(self.events, self.newest, eviction)
        self._refused_evictions.note_evicted(eviction)

    def _carry_out(self, result: SessionResult, seconds: float) -> None:
        plan = result.plan
        self.introspection.note_session(plan, seconds)
        if self.options.dry_run:
            self._shadow.carry_out(plan)
            return
        if plan.binds or plan.evictions:
            counts = len(plan.binds), len(plan.evictions), len(plan.unschedulable), seconds * 1_000
            _LOG.info("session: %d binds, %d evictions, %d unschedulable in %.1f ms", *counts)
        self._executor.carry_out(plan)

    @property
    def is_ready(self) -> bool:
        """Whether this process schedules, or could as soon as it leads."""
        return self.watches.is_synced and not self.watches.lost() and not self._stopping.is_set()

    def stop(self) -> None:
        """Ask the scheduler to end."""
        self._stopping.set()

    async def run(self) -> bool:
        """Schedule until `stop` is called; return False if the lease was lost, and raise what broke a part."""
        gc.set_threshold(*_GARBAGE_THRESHOLDS)
        await self.introspection.start()
        parts = [self._beat(), self.watches.run(), self._begin(), self.sessions.run(), self.events.run()]
        parts.append(self._shadow.run() if self.options.dry_run else self.overdue.run())
        tasks = [asyncio.create_task(part) for part in parts]
        if isinstance(self.leadership, Leadership):
            self.leadership.start()
        stopping = asyncio.create_task(self._stopping.wait())
        has_answers = False
        try:
            done, _ = await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
            self._is_scheduling = False
            has_answers = await self._finish_writes()
            await self.events.drain(_EVENTS_GRACE)
            for task in done:
                if task is not stopping:
                    task.result()  # raises what ended it
        finally:
            self._is_scheduling = False
            for task in (*tasks, stopping):
                task.cancel()
            await asyncio.gather(*tasks, stopping, return_exceptions=True)
            writers = (self.binder, self.victims, self.statuses, *self.groups)
            await asyncio.gather(*(writer.close() for writer in writers))
            if isinstance(self.leadership, Leadership):
                await asyncio.to_thread(self.leadership.stop, releases=has_answers)
            await self.introspection.stop()
            last = asyncio.wrap_future(self._worker.submit(self.cluster.close))
            await asyncio.wait([last], timeout=_SESSION_GRACE)
            self._worker.shutdown(wait=False)
            await self.client.close()
        return not self.leadership.is_lost

    async def _finish_writes(self) -> bool:
        """Finish gangs that were begun, and wait for the answers to all writes; return whether they have come."""
        writers = (self.binder, self.victims, self.statuses)
        try:
            async with asyncio.timeout(_WRITES_GRACE):
                await asyncio.gather(self.binder.finish(), self.victims.finish())
                await self.statuses.finish()
        except TimeoutError:
            return False
        return not any(writer.tasks.has_failed for writer in writers)

    async def _beat(self) -> None:
        """Show that the event loop makes progress; end the process when the lease is lost or a part has broken."""
        while True:
            self._heart = self._monotonic()
            for part in (self.watches, self.binder, self.victims, self.statuses, *self.groups):
                part.tasks.raise_failure()
            if self.leadership.is_lost:
                self._stopping.set()
            lost = self.watches.lost(_BLIND_FOR)
            if lost and isinstance(self.leadership, Leadership) and self.leadership.may_write:
                raise ApiError(f"{' and '.join(lost)} cannot be read any more: this process gives the lease back")
            await asyncio.sleep(_HEARTBEAT)

    async def _begin(self) -> None:
        """Begin to schedule when everything is listed and this process leads."""
        while not self.watches.is_synced:
            await asyncio.sleep(0.01)
        gc.freeze()  # the objects of the first lists live long
        _LOG.info("all kinds are listed: %d nodes, %d objects wait", self.cluster.cluster.nodes.count, len(self.inbox))
        if isinstance(self.leadership, Leadership):
            self.leadership.ask()
        while not self.leadership.may_write:
            await asyncio.sleep(0.02)
        if self.watches.reflectors[Pod.KIND].list_began < self.leadership.leads_since:
            # Bindings of the process that led before may not have reached this process: list once more.
            await self.watches.relist_pods()
        if not self.options.dry_run:
            self.groups[0].take_over()
        self._is_scheduling = True
        self.inbox.wake()
        await asyncio.Event().wait()
