"""The page for Prometheus: kube-scheduler's names, attempts, latencies, victims."""

from __future__ import annotations

import re

from msgspec.structs import replace

from tests.support.builders import pod
from tutti.cluster.edits import Put, Remove
from tutti.engine.session.plan import Bound, Eviction, GangPlan, Nominated, Plan, Turn, Unschedulable
from tutti.live.introspection.cluster_reader import ClusterNumbers
from tutti.live.introspection.scheduler_metrics import LiveNumbers, SchedulerMetrics

LIVE = LiveNumbers(
    leads=True, ready=True, inbox=0, in_flight=0, bindings_waiting=0, window=16, bindings_refused=2,
    binding_errors={409: 2, 0: 1}, evictions=0, evictions_refused=0, evictions_overdue=0, rejected_pods=0,
    status_waiting=0, status_failed=0,
    events_waiting=0, clock_jumps=0, watch_ages={"Pod": 1.5}, watch_lists={"Pod": 1},
)  # fmt: skip
NUMBERS = ClusterNumbers({"active": 1, "gated": 2}, {"whole": 3}, nodes=4, pods=5, assumed=1)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def metrics(clock: Clock) -> SchedulerMetrics:
    return SchedulerMetrics("tutti", preempts=True, monotonic=clock, started=1_000_000)


def samples(page: str) -> dict[str, float]:
    found = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert re.fullmatch(r'[a-z_]+(\{([a-z_]+="[^"]*",?)+\})?', name), line
            assert name not in found, "no sample occurs twice"
            found[name] = float(value)
    return found


def turn(*pods: str, gang: str | None = None) -> Turn:
    return Turn((0, False, 0, pods[0]), pods, gang)


def test_a_pod_is_followed_from_its_arrival_to_its_binding() -> None:
    clock = Clock()
    counted = metrics(clock)
    waiting = pod("a", schedulerName="tutti")
    counted.arrivals.observe([Put(waiting), Put(pod("other", schedulerName="default-scheduler"))])
    clock.now += 1
    counted.note_session(
        replace(Plan.of([], [], [Unschedulable("default/a", "no")], []), turns=(turn("default/a"),)), 0.5
    )
    assert counted.arrivals.waits_for("default/a") == "room"
    clock.now += 2
    bound = Bound("default/a", "n1", uid="a")
    counted.note_session(replace(Plan.of([bound], [], [], []), turns=(turn("default/a"),)), 0.004)
    clock.now += 0.1
    counted.note_bound(bound)
    page = samples(counted.text(NUMBERS, LIVE))
    assert page['scheduler_schedule_attempts_total{profile="tutti",result="scheduled"}'] == 1
    assert page['scheduler_schedule_attempts_total{profile="tutti",result="unschedulable"}'] == 1
    assert page['scheduler_schedule_attempts_total{profile="tutti",result="error"}'] == 2
    assert page['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="2"}'] == 3.1
    duration = page['scheduler_scheduling_attempt_duration_seconds_sum{profile="tutti",result="scheduled"}']
    assert round(duration, 3) == 0.104
    assert page["scheduler_pod_scheduling_attempts_sum"] == 2
    assert page["tutti_session_duration_seconds_count"] == 2
    assert len(counted.arrivals) == 0


def test_the_page_has_kube_scheduler_s_names_and_buckets() -> None:
    page = samples(metrics(Clock()).text(NUMBERS, LIVE))
    assert page['scheduler_pending_pods{queue="gated"}'] == 2
    assert page['scheduler_cache_size{type="assumed_pods"}'] == 1
    bucket = 'scheduler_scheduling_attempt_duration_seconds_bucket{profile="tutti",result="scheduled",le="%s"}'
    assert bucket % "0.001" in page
    assert bucket % "16.384" in page
    assert 'scheduler_preemption_victims_bucket{le="64"}' in page
    assert page['tutti_binding_errors_total{status="409"}'] == 2
    assert page['tutti_binding_errors_total{status="none"}'] == 1
    assert page['tutti_watch_age_seconds{kind="Pod"}'] == 1.5
    assert page["tutti_is_leader"] == 1


def test_preemption_is_counted_for_pods_and_gangs() -> None:
    counted = metrics(Clock())
    plan = Plan.of(
        [],
        [Eviction(f"x/{n}", "n1", "a/pod") for n in range(3)] + [Eviction("x/9", "n1", "a/gang")],
        [Unschedulable("a/none", "no room"), Unschedulable("a/more", "no members", waits_for="members")],
        [],
        [Nominated("a/pod", "n1")],
        [GangPlan("a/gang", "annotation", 2, 2, 0, missing=2, placed=0, nominated=2, evicts=("x/9",))],
    )
    counted.note_session(plan, 0.01)
    page = samples(counted.text(NUMBERS, LIVE))
    assert page["scheduler_preemption_attempts_total"] == 2
    assert page["scheduler_workload_preemption_attempts_total"] == 1
    assert (page["scheduler_preemption_victims_sum"], page["scheduler_preemption_victims_count"]) == (3, 1)
    assert page["scheduler_workload_preemption_victims_sum"] == 1
    assert page['scheduler_podgroup_schedule_attempts_total{profile="tutti",result="unschedulable"}'] == 1


def test_pods_of_incomplete_gangs_are_not_tried() -> None:
    clock = Clock()
    counted = metrics(clock)
    counted.arrivals.observe([Put(pod("a", schedulerName="tutti"))])
    missing = Unschedulable("default/a", "1 of 2 pods exist", gang="default/g", waits_for="members")
    gang = GangPlan("default/g", "annotation", 2, 1, 0, missing=2)
    plan = Plan.of([], [], [missing], [], [], [gang])
    counted.note_session(replace(plan, turns=(turn("default/a", gang="default/g"),)), 0.01)
    bound = Bound("default/a", "n1", uid="a")
    started = replace(gang, pods=2, placed=2)
    plan = replace(Plan.of([bound], [], [], [], [], [started]), turns=(turn("default/a", gang="default/g"),))
    counted.note_session(plan, 0.01)
    counted.note_bound(bound)
    page = samples(counted.text(NUMBERS, LIVE))
    assert page['scheduler_schedule_attempts_total{profile="tutti",result="unschedulable"}'] == 0
    assert page['scheduler_podgroup_schedule_attempts_total{profile="tutti",result="unschedulable"}'] == 0
    assert page['scheduler_podgroup_schedule_attempts_total{profile="tutti",result="scheduled"}'] == 1
    assert page["scheduler_pod_scheduling_attempts_sum"] == 1
    assert page["scheduler_preemption_attempts_total"] == 0


def test_pods_that_go_are_forgotten_and_new_ones_of_the_same_name_start_anew() -> None:
    clock = Clock()
    counted = metrics(clock)
    counted.arrivals.observe([Put(pod("a", schedulerName="tutti"))])
    assert counted.arrivals.take("default/a", "another uid") is None
    counted.arrivals.observe([Remove("Pod", "default/a", "a")])
    assert counted.arrivals.take("default/a", "a") is None
