"""The numbers of the scheduler on /metrics: kube-scheduler's names where they mean the same, and Tutti's own.

A session tries many pods at once, so two of kube-scheduler's times are read as a pod sees them: an attempt lasts from
the start of the session to the answer to the Binding, or to the end of the session if the pod waits. Pods that wait for
further pods of their gang are not tried: kube-scheduler does not take them into its queue either.

Contract: plain numbers that only the event loop changes. Labels come from fixed sets (results, phases, followed kinds,
HTTP statuses), so that the page cannot grow without bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tutti import __version__
from tutti.engine.session.plan import Bound, Plan
from tutti.live.introspection.cluster_reader import ClusterNumbers
from tutti.live.introspection.pod_arrivals import PodArrivals
from tutti.present.prometheus_text import HistogramCounts, exponential_bounds, family, histogram
from tutti.process_memory import resident_memory

_ATTEMPT = exponential_bounds(0.001, 2, 15)
_SLI = exponential_bounds(0.01, 2, 20)
_VICTIMS, _GANG_VICTIMS = exponential_bounds(1, 2, 7), exponential_bounds(1, 2, 11)
_MOST_ATTEMPTS = 15
"""Pods with more attempts share a label, as in kube-scheduler."""


class LiveNumbers(NamedTuple):
    """What the event loop knows at the moment of a scrape."""

    leads: bool
    ready: bool
    inbox: int
    in_flight: int
    """Bindings that were sent and not answered."""
    bindings_waiting: int
    """Bindings that are to be sent."""
    window: int
    """How many bindings may be in flight."""
    bindings_refused: int
    binding_errors: dict[int, int]
    """Binding requests that failed, by HTTP status; 0: no answer."""
    evictions: int
    evictions_refused: int
    evictions_overdue: int
    rejected_pods: int
    status_waiting: int
    status_failed: int
    events_waiting: int
    clock_jumps: int
    watch_ages: dict[str, float]
    """Seconds since the last byte from the server, by kind."""
    watch_lists: dict[str, int]


class SchedulerMetrics:
    """See the module's docstring; `monotonic` returns seconds, `started` is microseconds since 1970."""

    def __init__(self, scheduler_name: str, *, preempts: bool, monotonic: Callable[[], float], started: int) -> None:
        self.arrivals = PodArrivals(scheduler_name, monotonic)
        self._name, self._preempts, self._monotonic, self._started = scheduler_name, preempts, monotonic, started
        self._attempts: Counter[str] = Counter(scheduled=0, unschedulable=0, error=0)
        self._gang_attempts: Counter[str] = Counter(scheduled=0, unschedulable=0)
        self._durations = {result: HistogramCounts(_ATTEMPT) for result in ("scheduled", "unschedulable")}
        self._sli: dict[int, HistogramCounts] = {}
        self._pod_attempts = HistogramCounts(exponential_bounds(1, 2, 5))
        self._victims, self._gang_victims = HistogramCounts(_VICTIMS), HistogramCounts(_GANG_VICTIMS)
        self._preemptions = self._gang_preemptions = 0
        self._sessions = HistogramCounts(_ATTEMPT)

    # What happens -----------------------------------------------------------------------------------------------------

    def note_session(self, plan: Plan, seconds: float) -> None:
        """Count a session that has just ended."""
        self._sessions.observe(seconds)
        self.arrivals.note_session(plan, self._monotonic() - seconds)
        incomplete = {each.gang or each.pod for each in plan.unschedulable if each.waits_for == "members"}
        waiting = sum(each.waits_for != "members" for each in plan.unschedulable) + len(plan.nominated)
        if waiting:
            self._attempts["unschedulable"] += waiting
            self._durations["unschedulable"].observe(seconds, waiting)
        for gang in plan.gangs:
            if gang.starts or gang.gang not in incomplete:
                self._gang_attempts["scheduled" if gang.starts else "unschedulable"] += 1
        if self._preempts and (plan.evictions or plan.unschedulable):
            self._note_preemption(plan)

    def _note_preemption(self, plan: Plan) -> None:
        gangs = {gang.gang for gang in plan.gangs if gang.evicts}
        victims = Counter(each.by for each in plan.evictions if each.to is None and not each.reason)
        in_vain = [each for each in plan.unschedulable if each.waits_for in ("room", "budgets")]
        gangs_in_vain = {each.gang for each in in_vain if each.gang is not None}
        self._gang_preemptions += len(gangs & victims.keys()) + len(gangs_in_vain)
        self._preemptions += len(victims.keys() - gangs) + sum(each.gang is None for each in in_vain)
        for by, count in victims.items():
            (self._gang_victims if by in gangs else self._victims).observe(count)

    def note_bound(self, bound: Bound) -> None:
        """Count a pod that is bound."""
        self._attempts["scheduled"] += 1
        arrival = self.arrivals.take(bound.pod, bound.uid)
        if arrival is None:
            return
        now, attempts = self._monotonic(), max(arrival.attempts, 1)
        self._durations["scheduled"].observe(now - arrival.tried_at)
        self._pod_attempts.observe(attempts)
        label = min(attempts, _MOST_ATTEMPTS)
        if label not in self._sli:
            self._sli[label] = HistogramCounts(_SLI)
        self._sli[label].observe(now - arrival.seen_at)

    # The page ---------------------------------------------------------------------------------------------------------

    def text(self, cluster: ClusterNumbers, live: LiveNumbers) -> str:
        """Return the page."""
        return "".join(f"{line}\n" for part in (self._as_kube_scheduler(cluster, live), self._own(cluster, live))
                       for line in part)  # fmt: skip

    def _as_kube_scheduler(self, cluster: ClusterNumbers, live: LiveNumbers) -> Iterator[str]:
        about = "Number of pending pods, by the queue type: active, backoff, unschedulable or gated."
        yield from family("scheduler_pending_pods", "gauge", about, _by("queue", cluster.pending))
        attempts = Counter(self._attempts)
        attempts["error"] = live.bindings_refused
        about = "Number of attempts to schedule pods, by the result. error: a planned binding was refused or not sent."
        yield from family("scheduler_schedule_attempts_total", "counter", about, self._by_result(attempts))
        about = "From the start of the session to the answer to the binding, or to the end of the session."
        series = (({"profile": self._name, "result": result}, seen) for result, seen in self._durations.items())
        yield from histogram("scheduler_scheduling_attempt_duration_seconds", about, series)
        about = "From the first report of a pod to the answer to its binding, by the number of attempts."
        sli = (({"attempts": _attempts(count)}, seen) for count, seen in sorted(self._sli.items()))
        yield from histogram("scheduler_pod_scheduling_sli_duration_seconds", about, sli)
        about = "Number of attempts to successfully schedule a pod."
        yield from histogram("scheduler_pod_scheduling_attempts", about, [({}, self._pod_attempts)])
        about = "Number of attempts to schedule a gang, by the result."
        gangs = self._by_result(self._gang_attempts)
        yield from family("scheduler_podgroup_schedule_attempts_total", "counter", about, gangs)
        about = "Attempts of single pods without room to find victims, with and without success."
        yield from family("scheduler_preemption_attempts_total", "counter", about, [({}, self._preemptions)])
        about = "Attempts of gangs without room to find victims, with and without success."
        yield from family("scheduler_workload_preemption_attempts_total", "counter", about,
                          [({}, self._gang_preemptions)])  # fmt: skip
        about = "Number of victims of a preemption by a single pod."
        yield from histogram("scheduler_preemption_victims", about, [({}, self._victims)])
        about = "Number of victims of a preemption by a gang."
        yield from histogram("scheduler_workload_preemption_victims", about, [({}, self._gang_victims)])
        sizes = {"nodes": cluster.nodes, "pods": cluster.pods, "assumed_pods": cluster.assumed}
        about = "Number of nodes, pods with a node, and assumed pods in memory."
        yield from family("scheduler_cache_size", "gauge", about, _by("type", sizes))

    def _own(self, cluster: ClusterNumbers, live: LiveNumbers) -> Iterator[str]:
        yield from family("tutti_gangs", "gauge", "Gangs that have pods, by phase.", _by("state", cluster.gangs))
        yield from histogram("tutti_session_duration_seconds", "Sessions, changes included.", [({}, self._sessions)])
        about = "Binding requests that failed, by HTTP status; none: no answer came."
        errors = (({"status": str(status or "none")}, count) for status, count in sorted(live.binding_errors.items()))
        yield from family("tutti_binding_errors_total", "counter", about, errors)
        about = "Seconds since the API server was last heard on the watch of a kind."
        yield from family("tutti_watch_age_seconds", "gauge", about, _by("kind", live.watch_ages))
        about = "Complete lists of a kind: more than one means that a watch could not go on."
        yield from family("tutti_watch_lists_total", "counter", about, _by("kind", live.watch_lists))
        for name, kind, about, value in (
            ("tutti_is_leader", "gauge", "Whether this process may write now.", int(live.leads)),
            ("tutti_is_ready", "gauge", "Whether all watches are synced.", int(live.ready)),
            ("tutti_partial_gangs", "gauge", "Gangs that run in part and never ran whole.", cluster.partial_gangs),
            ("tutti_holds", "gauge", "Pods and reservations for which room is held.", cluster.holds),
            ("tutti_reservations", "gauge", "Starving turns with reserved room.", int(cluster.has_reservation)),
            ("tutti_unreadable_objects", "gauge", "Objects whose newest version cannot be read.", cluster.unreadable),
            ("tutti_inbox_entries", "gauge", "Changes that wait for the next session.", live.inbox),
            ("tutti_bindings_in_flight", "gauge", "Bindings that were sent and not answered.", live.in_flight),
            ("tutti_bindings_waiting", "gauge", "Bindings that are to be sent.", live.bindings_waiting),
            ("tutti_binding_window", "gauge", "How many bindings may be in flight.", live.window),
            ("tutti_bindings_refused_total", "counter", "Bindings refused or not sent.", live.bindings_refused),
            ("tutti_evictions_total", "counter", "Pods that were evicted.", live.evictions),
            ("tutti_evictions_refused_total", "counter", "Evictions refused or not sent.", live.evictions_refused),
            ("tutti_evictions_overdue_total", "counter", "Victims that did not leave in time.", live.evictions_overdue),
            ("tutti_rejected_bare_pods_total", "counter", "Bare pods that kubelets rejected.", live.rejected_pods),
            ("tutti_status_writes_waiting", "gauge", "Pods whose status is to be written.", live.status_waiting),
            ("tutti_status_writes_failed_total", "counter", "Writes of a status that failed.", live.status_failed),
            ("tutti_events_waiting", "gauge", "Events that are to be written.", live.events_waiting),
            ("tutti_clock_jumps_total", "counter", "Jumps of the API server's time.", live.clock_jumps),
            ("tutti_work_units_total", "counter", "Work of the engine, in units of about 10 ns.", cluster.work_units),
            ("process_resident_memory_bytes", "gauge", "Memory of this process.", resident_memory()),
            ("process_start_time_seconds", "gauge", "When this process started.", self._started / 1e6),
        ):
            yield from family(name, "gauge" if kind == "gauge" else "counter", about, [({}, value)])
        yield from family("tutti_build_info", "gauge", "The version.", [({"version": __version__}, 1)])

    def _by_result(self, counts: Counter[str]) -> Iterator[tuple[dict[str, str], int]]:
        return (({"profile": self._name, "result": result}, count) for result, count in counts.items())


def _attempts(count: int) -> str:
    return str(count) if count < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"


def _by(label: str, values: Mapping[str, float]) -> Iterator[tuple[dict[str, str], float]]:
    return (({label: name}, value) for name, value in sorted(values.items()))
