"""The changed fields of an object give the new object again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.builders import node, pod
from tests.support.random_clusters import RandomCluster
from tests.support.watch_streams import WatchStream
from tutti.cluster.edits import Put
from tutti.exceptions import InputError
from tutti.kube import objects as k
from tutti.wire.recording.object_changes import changed_fields, with_changes

SEEDS = st.integers(0, 2**32)


def assert_round_trip(old: k.Object, new: k.Object) -> None:
    text = msgspec.json.encode(changed_fields(old, new))
    assert with_changes(old, msgspec.json.decode(text)) == new


@given(SEEDS)
def test_changes_of_a_watch_survive(seed: int) -> None:
    last: dict[tuple[str, str], k.Object] = {}
    for edit in WatchStream(seed, 100).noisy(seed):
        if isinstance(edit, Put):
            name = edit.obj.KIND, edit.obj.key
            assert_round_trip(last.get(name, edit.obj), edit.obj)
            last[name] = edit.obj


@given(SEEDS)
def test_changes_between_any_two_objects_of_a_kind_survive(seed: int) -> None:
    world = RandomCluster(seed)
    for make in (world.pod, lambda: world.node("n"), world.budget, world.volume, world.claim, world.service):
        assert_round_trip(make(), make())


def test_a_heartbeat_is_short() -> None:
    beat = k.Condition(type="Ready", status="True", last_heartbeat_time="2026-01-01T00:00:00Z")
    old = replace(node("n"), status=replace(node("n").status, conditions=[beat], images=[k.NodeImage(names=["a"])]))
    later = replace(beat, last_heartbeat_time="2026-01-01T00:05:00Z")
    new = replace(
        old,
        metadata=replace(old.metadata, resource_version="9"),
        status=replace(old.status, conditions=[later]),
    )
    assert changed_fields(old, new) == {"metadata": {"resourceVersion": "9"}, "status": {"conditions": [later]}}
    assert changed_fields(new, new) == {}


def test_a_field_can_go_back_to_its_default() -> None:
    old = pod("p", priority=5)
    new = replace(old, spec=replace(old.spec, priority=None))
    assert changed_fields(old, new) == {"spec": {"priority": None}}
    assert with_changes(old, {"spec": None}) == replace(old, spec=k.PodSpec())


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"colour": 1}, "colour: there is no such field"),
        ({"spec": {"colour": 1}}, "spec.colour: there is no such field"),
        ({"spec": 4}, "spec: expected a mapping, got int"),
        ({"spec": {"containers": [{"image": 4}]}}, "spec.containers[0].image: expected str, got int"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a: expected str, got int"),
    ],
)
def test_changes_that_do_not_fit_are_named(changes: dict[str, object], line: str) -> None:
    with pytest.raises(InputError) as caught:
        with_changes(pod("p"), changes)
    assert str(caught.value) == line
