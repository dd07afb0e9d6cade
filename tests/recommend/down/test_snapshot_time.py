"""To which moment ages count when nodes are to go: that of the dump, where it is an old one."""

import time

import pytest
from msgspec.structs import replace

from tests.support.scale_down_clusters import read_request, small_cluster, stay_reasons
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.autoscalers.cluster_autoscaler.drainability import latest_moment
from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import InputError
from tutti.kube.objects import Condition, Node, NodeStatus, ObjectMeta
from tutti.kube.reading.validation import validate
from tutti.kube.times import micros
from tutti.market.offerings import NodeBudget
from tutti.recommend.down.snapshot_time import set_snapshot_time
from tutti.recommend.records.request import DownOptions, RecommendOptions

DUMPED = "2026-11-16T09:00:00Z"
MINUTE = 60_000_000


def dump_request(*, beats=(DUMPED, "2026-11-16T08:58:00Z"), late=180, created=None, **down):
    """Two nodes whose kubelets spoke at these times, so many minutes ago."""
    objects, pools = small_cluster(("dns-0", "n0", 300, {}))
    nodes = [each for each in objects if each["kind"] == "Node"]
    for node, beat in zip(nodes, beats, strict=False):
        node.setdefault("status", {})["conditions"] = [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": beat},
            {"type": "DiskPressure", "status": "False"},
        ]
    for each in objects:
        each["metadata"].pop("creationTimestamp", None)
        if created is not None and each["kind"] == "Pod":
            each["metadata"] |= {"creationTimestamp": created, "namespace": "kube-system"}
            each.setdefault("status", {}).pop("startTime", None)
    present = micros(DUMPED) + late * MINUTE
    return read_request(objects, pools, RecommendOptions(down=DownOptions(**{"now": present, **down}))), present


@pytest.mark.parametrize(
    ("late", "age"),
    [(0, ""), (9, ""), (10, ""), (11, "11 min"), (180, "3 h"), (60 * 72, "3 d"), (-30, "")],
)
def test_an_old_dump_has_its_own_moment(late, age):
    given, present = dump_request(late=late)
    found = set_snapshot_time(given, present=present)
    assert found.options.down.now == (micros(DUMPED) if age else present)
    more = found.notes[len(given.notes) :]
    assert more == ((f"the dump is from about {age} ago: ages are measured at that time",) if age else ())


@pytest.mark.parametrize(("late", "gone"), [(0, 0), (180, 0), (180 + 60, 1)])
def test_schedules_count_to_the_present_also_for_an_old_dump(late, gone):
    given, present = dump_request(late=late)
    # Nothing may go from noon on, for half an hour; the dump is from nine.
    start = (9 * 60 + min(late, 180)) // 60
    frozen = NodeBudget(nodes="0", schedule=f"0 {start} * * *", duration=1800)
    pools = tuple(
        replace(pool, down_rules=replace(pool.down_rules, budgets=(frozen,))) for pool in given.catalogue.pools
    )
    given = replace(given, catalogue=replace(given.catalogue, pools=pools))
    plan = make_recommendation(
        set_snapshot_time(given, present=present), WorkBudget.of_seconds(1, time.process_time)
    ).down
    assert len(plan.removals) == gone


def test_requests_without_or_with_their_own_moment_stay_unchanged():
    given, present = dump_request(beats=())
    assert latest_moment(given.objects) is None
    assert set_snapshot_time(given, present=present) is given
    given, present = dump_request(now=17)
    assert set_snapshot_time(given, present=present) is given
    without = replace(given, options=RecommendOptions())
    assert set_snapshot_time(without, present=present) is without


def test_a_young_pod_of_an_old_dump_is_young():
    """Half an hour old when it was dumped; kube-system's pods are left alone for an hour."""
    given, present = dump_request(created="2026-11-16T08:30:00Z")
    assert (
        stay_reasons(make_recommendation(given, WorkBudget.of_seconds(5, time.process_time)).down)["n0"]
        != "BlockedByPod"
    )
    plan = make_recommendation(set_snapshot_time(given, present=present), WorkBudget.of_seconds(5, time.process_time))
    assert stay_reasons(plan.down)["n0"] == "BlockedByPod"
    assert plan.notes[-1] == "the dump is from about 3 h ago: ages are measured at that time"


def test_a_heartbeat_that_is_no_time_is_refused():
    status = NodeStatus(conditions=[Condition(type="Ready"), Condition(last_heartbeat_time="yesterday")])
    with pytest.raises(InputError, match="yesterday") as refused:
        validate(Node(metadata=ObjectMeta(name="n"), status=status))
    assert refused.value.field == "status.conditions[1].lastHeartbeatTime"
