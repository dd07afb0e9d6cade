"""Edits, plans and queue records survive JSON; bytes that do not fit are errors that name the field."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import disruption_budget, pod
from tests.support.random_clusters import RandomCluster
from tests.support.volumes import bound_volume, claim, volume
from tests.support.watch_streams import WatchStream
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import (
    AssumeVolume,
    Bind,
    Edit,
    Evict,
    FinishedPod,
    Hold,
    Put,
    PutTemplate,
    RestorePod,
    SetArrivalOrder,
    SetFinished,
    SetPortAddresses,
    SetStart,
    Unevict,
)
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Bound, Eviction, Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_state import QueueRecord
from tutti.engine.session.session import session
from tutti.exceptions import InputError
from tutti.kube import objects as k
from tutti.kube.gangs.gang import Membership
from tutti.wire.recording.struct_codec import decode, edit_classes, encode

SEEDS = st.integers(0, 2**32)
PORTS = SetPortAddresses(3, "TCP", 80, frozenset(f"10.0.0.{number}" for number in range(9)))
UNDO_EDITS = [
    PORTS,
    SetArrivalOrder("default/p", 7),
    SetStart("default/p", 7),
    SetFinished("default/p", FinishedPod(True, "u", 5, Membership("default/g", "native"))),
    SetFinished("default/p", None),
    RestorePod(pod("p"), "n", 5, 7, Hold("default/p", "m", 9, 1)),
    RestorePod(pod("p"), None, 5, 7, None, Put(pod("p"))),
    Evict("default/p", "2026-01-01T00:00:00Z"),
    Unevict("default/p", "u"),
]


def assert_round_trip(edit: Edit) -> None:
    text = encode(edit)
    again = decode(text, Edit)
    assert again == edit
    assert type(again) is type(edit)
    assert encode(again) == text
    assert b"\n" not in text


@given(SEEDS)
def test_every_edit_of_a_watch_survives(seed: int) -> None:
    for edit in WatchStream(seed, 60).noisy(seed):
        assert_round_trip(edit)


@given(SEEDS)
def test_every_edit_of_a_cluster_survives(seed: int) -> None:
    world = RandomCluster(seed, assumptions=True)
    cluster = Cluster(world.objects())
    mark = cluster.mark()
    for _ in range(30):
        edit = world.edit(cluster)
        assert_round_trip(edit)
        cluster.apply(edit)
    for edit in (*cluster._undo._edits, *cluster.edits()):
        assert_round_trip(edit)
    cluster.rollback(mark)


@pytest.mark.parametrize("edit", UNDO_EDITS, ids=lambda edit: type(edit).__name__)
def test_edits_that_only_undo_needs_survive(edit: Edit) -> None:
    assert_round_trip(edit)


def test_every_class_of_edits_is_tested() -> None:
    tested = {type(edit) for seed in range(20) for edit in WatchStream(seed, 60).edits} | {*map(type, UNDO_EDITS)}
    for seed in range(5):
        world = RandomCluster(seed)
        cluster = Cluster(world.objects())
        for _ in range(60):
            tested.add(type(edit := world.edit(cluster)))
            cluster.apply(edit)
    assert tested == set(edit_classes().values())


@given(SEEDS)
def test_plans_and_queues_survive(seed: int) -> None:
    world = RandomCluster(seed)
    cluster = Cluster(world.objects())
    engine, queue, now = Engine(cluster), Queue(cluster), 1_800_000_000_000_000
    for step in range(3):
        plan = session(engine, queue, now + step * 70_000_000, Policy())
        assert decode(encode(plan), Plan) == plan
        record = queue.freeze()
        assert decode(encode(record), QueueRecord) == record
        cluster.apply(world.edit(cluster))


def test_a_plan_keeps_its_edits_and_budgets() -> None:
    volumes = AssumeVolume(bound_volume(volume("v"), "c"), "default/p"), AssumeVolume(claim("c"), "default/p")
    plan = Plan(
        {"binds": 1},
        (Bound("default/p", "n", volumes=volumes),),
        (
            Eviction("default/v", "n", "default/p", change=Put(pod("v"))),
            Eviction("default/w", "n", "default/p", to="m", volumes=volumes[:1]),
        ),
        budgets=(disruption_budget("web", 1),),
    )
    text = encode(plan)
    assert decode(text, Plan) == plan
    assert b'"change":{"type":"Put","kind":"Pod","object":{' in text
    assert b'"volumes":[{"type":"AssumeVolume","kind":"PersistentVolume","object":{' in text
    assert b'"score"' not in text, "fields with default values are left out"


def test_the_wire_form_has_the_kind() -> None:
    assert encode(Put(k.Namespace(metadata=k.ObjectMeta(name="a")))) == (
        b'{"type":"Put","kind":"Namespace","object":{"metadata":{"name":"a"}}}'
    )
    group = k.VolcanoPodGroup(metadata=k.ObjectMeta(name="g"))
    assert decode(encode(PutTemplate(group)), Edit) == PutTemplate(group), "kinds of one name are told apart"


def test_sets_have_the_same_bytes_in_every_process() -> None:
    code = (
        "from tests.wire.recording.test_struct_codec import PORTS\n"
        "from tutti.wire.recording.struct_codec import encode\nprint(encode(PORTS).decode())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert printed == {encode(PORTS).decode() + "\n"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "JSON is malformed: Input data was truncated"),
        ("[]", "expected a mapping, got a list"),
        ("{}", 'type: "" is not an edit'),
        ('{"type":"Patch"}', 'type: "Patch" is not an edit'),
        ('{"type":"Bind","pod":"p"}', "node: the field is missing"),
        ('{"type":"Bind","pod":"p","node":1}', "node: expected str, got int"),
        ('{"type":"Bind","pod":"p","node":"n","zone":"a"}', "zone: Bind has no such field"),
        ('{"type":"Put","kind":"Pod"}', "object: the field is missing"),
        ('{"type":"Put","kind":"Sheep","object":{}}', 'kind: "Sheep" is not a kind that Tutti reads'),
        ('{"type":"Put","object":{}}', 'kind: "" is not a kind that Tutti reads'),
        (
            '{"type":"Put","kind":"Pod","object":{"metadata":{"name":"p"},"spec":{"containers":4}}}',
            "pod default/p: spec.containers: expected a list, got int",
        ),
        (
            '{"type":"SetFinished","pod":"p","finished":{"succeeded":2}}',
            "finished.succeeded: expected bool, got int",
        ),
    ],
)
def test_bytes_that_do_not_fit_are_named(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        decode(text.encode(), Edit)
    assert str(caught.value).startswith(line)


def test_nulls_of_other_programs_are_absent_fields() -> None:
    text = b'{"type":"Put","kind":"Pod","object":{"metadata":{"name":"p"},"spec":{"containers":null,"priority":null}}}'
    assert decode(text, Edit) == Put(k.Pod(metadata=k.ObjectMeta(name="p")))
    assert decode(b'{"type":"Bind","pod":"p","node":"n","start":null}', Edit) == Bind("p", "n")
