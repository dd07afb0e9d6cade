"""Introspection: joins what the event loop knows with what the worker thread reads from the cluster.

Contract: belongs to the event loop; the cluster is read by jobs on the worker thread, between sessions. These jobs get
at most a tenth of that thread's time, however many clients ask: scrapes then show older numbers, and other questions
wait. A scrape never waits long for a session. Nothing here changes what the scheduler does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from tutti import __version__
from tutti.engine.session.plan import Plan
from tutti.kube.times import timestamp
from tutti.live.introspection.cluster_reader import ClusterNumbers, ClusterReader
from tutti.live.introspection.debug_access import DebugAccess
from tutti.live.introspection.http_routes import HttpRoutes
from tutti.live.introspection.http_server import HttpServer
from tutti.live.introspection.plan_history import PlanHistory
from tutti.live.introspection.scheduler_metrics import LiveNumbers, SchedulerMetrics
from tutti.live.introspection.state_query import StateQuery
from tutti.live.leadership import Leadership
from tutti.wire.scheduler_state import QueuedTurn, SchedulerState, WatchState

if TYPE_CHECKING:
    from tutti.live.scheduler import LiveScheduler

_LOG = logging.getLogger("tutti.live")
_Result = TypeVar("_Result")
_PAUSE = 9
"""How many times as long as a reading took the worker thread is left alone afterwards."""
_SHORTEST_PAUSE = 0.2
_NUMBERS_WAIT = 1.0
"""Seconds for which a scrape waits for the worker thread."""
_HUNG_AFTER = 120.0
"""Seconds after which a worker thread that does not answer counts as hung; the longest sessions take seconds."""


class Introspection:
    """See the module's docstring."""

    def __init__(
        self,
        scheduler: LiveScheduler,
        metrics: SchedulerMetrics,
        *,
        worker: ThreadPoolExecutor,
        monotonic: Callable[[], float],
    ) -> None:
        self._scheduler, self._metrics, self._worker, self._monotonic = scheduler, metrics, worker, monotonic
        self._reader, self._plans = ClusterReader(scheduler.cluster), PlanHistory()
        self._numbers = ClusterNumbers({}, {})
        self._reading: asyncio.Future[ClusterNumbers] | None = None
        self._next_reading = monotonic()
        """When the worker thread may be asked again."""
        self._asked_at = monotonic()
        """When the worker thread was asked for the numbers that are being read."""
        self.on_listening: Callable[[str], None] = lambda url: _LOG.info("listening on %s", url)
        """Called with the address of the server."""
        self._server: HttpServer | None = None
        options = scheduler.options.http
        if options is not None:
            routes = HttpRoutes(self, DebugAccess(scheduler.client, monotonic))
            self._server = HttpServer(options, routes.handle)

    async def start(self) -> None:
        """Listen if the options say so."""
        if self._server is not None:
            await self._server.start()
            self.on_listening(self._server.url)

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            await self._server.stop()
        if self._reading is not None:
            self._reading.cancel()

    def note_session(self, plan: Plan, seconds: float) -> None:
        """Note a session that has just ended."""
        self._metrics.note_session(plan, seconds)
        self._plans.note(plan, now=self._scheduler.now(), seconds=seconds)

    # Probes -----------------------------------------------------------------------------------------------------------

    def health_problems(self) -> list[str]:
        """Return why this process should be restarted; that the event loop runs is shown by the answer itself."""
        problems = []
        self._read_numbers()
        silent = self._monotonic() - self._asked_at
        if self._reading is not None and not self._reading.done() and silent > _HUNG_AFTER:
            problems.append(f"the session thread has not answered for {silent:.0f} s")
        leadership = self._scheduler.leadership
        if isinstance(leadership, Leadership) and not leadership.is_alive:
            problems.append("the lease thread has ended")
        return problems

    def readiness_problems(self) -> list[str]:
        """Return what is missing before this process can schedule."""
        watches = self._scheduler.watches
        if self._scheduler.is_ready:
            return []
        problems = [f"{name} are not listed yet" for name in watches.unlisted()]
        problems += [f"{name} cannot be read any more" for name in watches.lost()]
        return problems or ["the scheduler is stopping" if watches.is_synced else "kinds are being discovered"]

    def notes(self) -> list[str]:
        """Return what cannot be read, and what follows."""
        return self._scheduler.watches.notes()

    # Metrics ----------------------------------------------------------------------------------------------------------

    async def metrics_text(self) -> str:
        """Return the page for Prometheus."""
        reading = self._read_numbers()
        await asyncio.wait([reading], timeout=_NUMBERS_WAIT)
        return self._metrics.text(self._numbers, self._live_numbers())

    def _read_numbers(self) -> asyncio.Future[ClusterNumbers]:
        """Ask the worker thread for the cluster's numbers, unless it is busy with that or was so lately."""
        if self._reading is None or (self._reading.done() and self._monotonic() >= self._next_reading):
            self._asked_at = self._monotonic()
            self._reading = self._on_worker(self._reader.numbers, self._scheduler.now())
            self._reading.add_done_callback(self._take_numbers)
        return self._reading

    def _take_numbers(self, reading: asyncio.Future[ClusterNumbers]) -> None:
        if not reading.cancelled() and reading.exception() is None:
            self._numbers = reading.result()

    def _on_worker(self, function: Callable[..., _Result], *arguments: object) -> asyncio.Future[_Result]:
        """Call a function on the worker thread, between sessions."""

        def call() -> _Result:
            started = self._monotonic()
            try:
                return function(*arguments)
            finally:
                ended = self._monotonic()
                self._next_reading = ended + max(_PAUSE * (ended - started), _SHORTEST_PAUSE)

        return asyncio.get_running_loop().run_in_executor(self._worker, call)

    def _live_numbers(self) -> LiveNumbers:
        scheduler, now = self._scheduler, self._monotonic()
        binder, victims, statuses = scheduler.binder, scheduler.victims, scheduler.statuses
        reflectors = scheduler.watches.reflectors
        return LiveNumbers(
            leads=scheduler.leadership.may_write and not scheduler.options.dry_run,
            ready=scheduler.is_ready,
            inbox=len(scheduler.inbox),
            in_flight=len(binder.in_flight),
            bindings_waiting=binder.waiting - len(binder.in_flight),
            window=binder.window_width,
            bindings_refused=binder.refused_count,
            binding_errors=binder.errors,
            evictions=victims.evicted_count,
            evictions_refused=victims.refused_count,
            evictions_overdue=scheduler.overdue.count,
            rejected_pods=scheduler.rejected.count,
            status_waiting=statuses.waiting,
            status_failed=statuses.failed,
            events_waiting=scheduler.events.waiting,
            clock_jumps=scheduler.client.clock.jumps,
            watch_ages={kind: now - each.heard_at for kind, each in reflectors.items() if each.synced.is_set()},
            watch_lists={kind: each.lists for kind, each in reflectors.items()},
        )

    # State ------------------------------------------------------------------------------------------------------------

    async def state(self, query: StateQuery) -> SchedulerState:
        """Return what the scheduler has in mind, as far as a query asks for it."""
        while (pause := self._next_reading - self._monotonic()) > 0:
            await asyncio.sleep(pause)
        now = self._scheduler.now()
        part = await self._on_worker(self._reader.read, query, now)
        scheduler, live, numbers = self._scheduler, self._live_numbers(), part.numbers
        leadership = scheduler.leadership
        return SchedulerState(
            time=timestamp(now),
            version=__version__,
            scheduler_name=scheduler.options.scheduler_name,
            identity=scheduler.options.identity,
            leads=leadership.may_write,
            holder=leadership.holder if isinstance(leadership, Leadership) else scheduler.options.identity,
            ready=live.ready,
            dry_run=scheduler.options.dry_run,
            namespace=query.namespace,
            counts={
                "nodes": numbers.nodes,
                "pods": numbers.pods,
                "assumed": numbers.assumed,
                "inFlight": live.in_flight,
                "bindingsWaiting": live.bindings_waiting,
                "inbox": live.inbox,
                "holds": numbers.holds,
                **{f"{name}Pods": count for name, count in numbers.pending.items()},
                **{f"{name}Gangs": count for name, count in numbers.gangs.items()},
            },
            queue=tuple(self._with_cause(turn, pod, query) for turn, pod in part.queue),
            pods=tuple(part.pods),
            holds=tuple(part.holds),
            assumed=tuple(replace(each, in_flight=each.pod in scheduler.binder.in_flight) for each in part.assumed),
            reservation=part.reservation,
            gangs=tuple(replace(gang, message=query.shown_text(gang.message)) for gang in part.gangs),
            plans=() if query.pod or query.gang else self._plans.shown(query),
            watches=() if query.hides_others else tuple(self._watches()),
            notes=() if query.hides_others else tuple(self.notes()),
            left_out=part.left_out,
        )

    def _with_cause(self, turn: QueuedTurn, pod: str, query: StateQuery) -> QueuedTurn:
        cause = self._metrics.arrivals.waits_for(pod) if turn.attempts else None
        return replace(turn, waits_for=cause or "", message=query.shown_text(turn.message))

    def _watches(self) -> list[WatchState]:
        now = self._monotonic()
        return [
            WatchState(
                kind=kind,
                resource=each.resource.name,
                synced=each.synced.is_set(),
                objects=each.known_count,
                lists=each.lists,
                heard_seconds_ago=round(now - each.heard_at, 1) if each.synced.is_set() else None,
                problem=str(each.problem) if each.problem is not None else "",
            )
            for kind, each in self._scheduler.watches.reflectors.items()
        ]
