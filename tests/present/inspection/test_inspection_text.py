"""The tables and texts of `tutti inspect`, character by character."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.exceptions import NotFoundError
from tutti.present.inspection.overview import overview_text
from tutti.present.inspection.state_tables import table_text
from tutti.present.inspection.target_text import gang_text, pod_text
from tutti.wire.scheduler_state import (
    AssumedBinding,
    EvictionSummary,
    GangSummary,
    PlanSummary,
    PodState,
    QueuedTurn,
    ReservedRoom,
    RoomHold,
    SchedulerState,
    WatchState,
)

TURNS = (
    QueuedTurn(
        namespace="team-a", name="train", kind="gang", position=1, pods=8, priority=100, state="waiting",
        since="2027-01-15T07:55:00Z", tried="2027-01-15T07:59:30Z", attempts=3, waits_for="room",
        message="6 of 8 pods fit", next_try="2027-01-15T08:04:30Z", cures=("node added", "pod removed"),
    ),
    QueuedTurn(
        namespace="team-b", name="web-0", kind="pod", position=2, state="backoff", since="2027-01-15T07:59:58Z",
        tried="2027-01-15T07:59:58Z", attempts=1, waits_for="victims", message="room is held",
        next_try="2027-01-15T08:00:03Z",
    ),
    QueuedTurn(namespace="team-b", name="elastic", kind="surplus", position=3, pods=2, state="due"),
)  # fmt: skip
GANGS = (
    GangSummary(
        namespace="team-a", name="train", dialect="coscheduling", phase="waiting", minimum=8, waiting=8,
        message="6 of 8 pods fit",
    ),
    GangSummary(
        namespace="team-b", name="elastic", dialect="native", phase="whole", minimum=2, running=2, waiting=2, nodes=1
    ),
)  # fmt: skip


def state(**fields: Any) -> SchedulerState:
    given = {
        "time": "2027-01-15T08:00:00Z", "version": "0.1.0", "scheduler_name": "tutti", "identity": "tutti-0_ab",
        "leads": True, "ready": True, "counts": {"nodes": 3, "pods": 1200, "unschedulablePods": 9, "waitingGangs": 1},
    }  # fmt: skip
    return SchedulerState(**{**given, **fields})


def test_the_queue() -> None:
    assert table_text(state(queue=TURNS, left_out={"queue": 1}), "queue", wide=False).splitlines() == [
        "NAMESPACE   POS   NAME                     PODS   PRIORITY   STATE     WAITS FOR   AGE      TRIES   "
        "NEXT TRY          MESSAGE",
        "team-a      1     gang/train               8      100        Waiting   room        5m       3       "
        "change or 4m30s   6 of 8 pods fit",
        "team-b      2     web-0                    1      0          Backoff   victims     2s       1       "
        "3s                room is held",
        "team-b      3     gang/elastic (surplus)   2      0          Due       <none>      <none>   0       now",
        "1 more entry: use --limit or -n",
    ]
    wide = table_text(state(queue=TURNS), "queue", wide=True).splitlines()
    assert "RETRIED ON" in wide[0]
    assert "30s        change or 4m30s   node added, pod removed" in wide[1]
    one = table_text(state(queue=TURNS[:1], namespace="team-a"), "queue", wide=False)
    assert one.startswith("POS   NAME"), "no namespace if only one was asked for"
    assert table_text(state(namespace="x"), "queue", wide=False) == "No pods wait in namespace x."


def test_gangs() -> None:
    assert table_text(state(gangs=GANGS), "gangs", wide=False).splitlines() == [
        "NAMESPACE   NAME      DIALECT        RUNNING   WAITING   STATUS    MESSAGE",
        "team-a      train     coscheduling   0/8       8         Waiting   6 of 8 pods fit",
        "team-b      elastic   native         2/2       2         Running",
    ]
    assert table_text(state(), "gangs", wide=False) == "No gangs have pods."


def test_holds_reservation_and_assumed_pods() -> None:
    given = state(
        holds=(
            RoomHold(owner="team-a/train-0", node="n1", priority=100, amounts={"cpu": "4"}, reserved=True),
            RoomHold(owner="team-b/web-0", node="n2", until="2027-01-15T08:01:00Z", amounts={"cpu": "1", "pods": "1"}),
        ),
        reservation=ReservedRoom(
            turn="gang/team-a/train", since="2027-01-15T07:58:00Z", until="2027-01-15T08:10:00Z", nodes=("n1",), holds=1
        ),
        assumed=(AssumedBinding(pod="team-b/x", node="n1", gang="team-b/elastic", in_flight=True),),
    )
    assert table_text(given, "holds", wide=False).splitlines() == [
        "NAMESPACE   OWNER     NODE   FOR             PRIORITY   EXPIRES   AMOUNTS",
        "team-a      train-0   n1     reservation     100        <none>    cpu=4",
        "team-b      web-0     n2     victims leave   0          60s       cpu=1,pods=1",
        "Reservation:  gang/train in team-a on 1 node, since 2m, which can start in 10m",
        "",
        "NAMESPACE   POD   NODE   GANG      BINDING",
        "team-b      x     n1     elastic   in flight",
    ]
    other = state(reservation=ReservedRoom(turn="", since="2027-01-15T07:58:00Z", holds=1))
    assert "Reservation:  for a pod or gang of another namespace, since 2m" in table_text(other, "holds", wide=False)


def test_plans() -> None:
    eviction = EvictionSummary(pod="team-b/old", node="n1", by="team-a/train")
    plan = PlanSummary(
        time="2027-01-15T07:59:00Z", milliseconds=12.5, binds=8, gangs_started=1, evicted=1, evictions=(eviction,),
        waiting={"room": 2, "members": 1},
    )  # fmt: skip
    assert table_text(state(plans=(plan,)), "plans", wide=True).splitlines() == [
        "AGE   DURATION   BINDS   GANGS   EVICTED   NOMINATED   WAITING",
        "60s   12.5ms     8       1       1         0           2 room, 1 members",
        "",
        "AGE   EVICTED POD   NODE   MAKES ROOM FOR   REASON",
        "60s   team-b/old    n1     team-a/train",
    ]
    assert table_text(state(), "plans", wide=True) == "No session has decided anything yet."


def test_watches() -> None:
    watch = WatchState(kind="Pod", resource="pods", synced=True, objects=3, lists=1, heard_seconds_ago=2.5)
    assert table_text(state(watches=(watch,)), "watches", wide=False).splitlines()[1] == (
        "Pod    pods       3         yes      2s ago   1       <none>"
    )
    assert "the right to get /debug/state" in table_text(state(), "watches", wide=False)


def test_the_overview() -> None:
    text = overview_text(state(queue=TURNS * 5, gangs=GANGS, notes=("pods cannot be read",)), wide=False)
    lines = text.splitlines()
    assert lines[:10] == [
        "Scheduler:    tutti 0.1.0, tutti-0_ab",
        "State:        leads, ready",
        "Cluster:      3 nodes, 1,200 pods on nodes",
        "Bindings:     0 not confirmed, 0 in flight",
        "Gangs:        0 running, 1 waiting, 0 partial, 0 refused",
        "Pending pods: 0 active, 0 backoff, 9 unschedulable, 0 gated",
        "Holds:        0",
        "Note:         pods cannot be read",
        "",
        "NAMESPACE   NAME    DIALECT        RUNNING   WAITING   STATUS    MESSAGE",
    ]
    assert lines[-1] == "5 more: tutti inspect queue"
    assert "elastic   native" not in text, "gangs that run are not on the first page"


def test_a_process_that_stands_by() -> None:
    text = overview_text(state(leads=False, holder="tutti-1_cd", ready=False, dry_run=True), wide=False)
    assert "State:        stands by for tutti-1_cd, not ready, dry run: nothing is written" in text
    assert "Pending pods" not in text


def test_names_and_notes_cannot_control_the_terminal() -> None:
    text = overview_text(state(scheduler_name="t\x1b[31m", notes=("x\x1b]0;title\x07",)), wide=False)
    assert text.replace("\n", "").isprintable()
    assert "Note:         x?]0;title?" in text


def test_one_pod() -> None:
    given = state(
        namespace="team-a",
        pods=(PodState(pod="team-a/train-0", state="waiting", gang="team-a/train", priority=100),),
        queue=TURNS[:1],
        holds=(RoomHold(owner="team-a/train-0", node="n1", amounts={"cpu": "4"}, reserved=True),),
    )
    assert pod_text(given, "train-0").splitlines() == [
        "Pod:         train-0",
        "Namespace:   team-a",
        "State:       Waiting",
        "Gang:        gang/train",
        "Priority:    100",
        "Queue:       position 1 (the gang)",
        "Tried:       3 times in 5m, the last 30s ago",
        "Waits for:   room: no node takes it as it is",
        "Next try:    after a change (node added or pod removed), at the latest in 4m30s",
        "Message:     6 of 8 pods fit",
        "Room:        reserved on node n1 (cpu 4)",
    ]
    bound = state(
        namespace="a",
        pods=(PodState(pod="a/x", state="assumed", node="n1"),),
        assumed=(AssumedBinding(pod="a/x", node="n1", in_flight=True),),
    )
    assert pod_text(bound, "x").splitlines()[2:] == [
        "State:       Assumed to n1", "Priority:    0", "Binding:     sent, no answer yet",
    ]  # fmt: skip
    with pytest.raises(NotFoundError, match="knows no pod x in namespace a"):
        pod_text(state(namespace="a"), "x")


def test_one_gang() -> None:
    given = state(
        namespace="team-b",
        gangs=GANGS[1:],
        queue=TURNS[2:],
        pods=(
            PodState(pod="team-b/e-0", state="bound", node="n1"),
            PodState(pod="team-b/e-1", state="bound", node="n1", terminating=True),
            PodState(pod="team-b/e-2", state="assumed", node="n1"),
            PodState(pod="team-b/e-3", state="not considered", message="waiting for scheduling gates: [x]"),
        ),
        assumed=(AssumedBinding(pod="team-b/e-2", node="n1", in_flight=True),),
        holds=(RoomHold(owner="team-b/e-3", node="n2"),),
    )
    assert gang_text(given, "elastic").splitlines() == [
        "Gang:        elastic",
        "Namespace:   team-b",
        "Dialect:     native",
        "State:       Running",
        "Pods:        2 run on 1 node, 2 wait; the minimum is 2",
        "Priority:    0",
        "Queue:       position 3 (the pods above the gang's minimum)",
        "Next try:    in the next session",
        "",
        "POD   STATE         NODE     ROOM HELD ON",
        "e-0   Bound         n1       <none>",
        "e-1   Terminating   n1       <none>",
        "e-2   Binding       n1       <none>",
        "e-3   Skipped       <none>   n2",
    ]
    with pytest.raises(NotFoundError, match="knows no gang x"):
        gang_text(state(namespace="a"), "x")
