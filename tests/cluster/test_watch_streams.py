"""A cluster that follows watches: stale, repeated and late updates change nothing that they should not."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.builders import ZONE, node, pod, pod_group
from tests.support.cluster_state import cluster_state
from tests.support.watch_stream_checks import check_stream, check_streams
from tutti.cluster import cluster as cluster_module
from tutti.cluster import object_versions, pod_updates
from tutti.cluster.assumed_volumes import AssumedVolumes
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import AssumeVolume, Bind, Edit, Hold, Put, Remove
from tutti.cluster.events import Event
from tutti.cluster.object_versions import RemovedUids
from tutti.engine.placement.engine import Engine
from tutti.exceptions import InputError
from tutti.kube import objects as k

STREAMS = 60


@pytest.mark.parametrize("seed", range(STREAMS))
def test_a_noisy_stream_ends_in_the_state_of_the_clean_stream(seed: int) -> None:
    check_stream(seed)


def _never(*_arguments: object) -> bool:
    return False


def _without_assumed_state(monkeypatch: pytest.MonkeyPatch) -> None:
    original = pod_updates.PodUpdates._update

    def update(self: pod_updates.PodUpdates, row: int, new: k.Pod, old: k.Pod) -> None:
        if new.spec.node_name is None and self._pods.node_names[row] is not None:
            self._assignments.unassign(row)
        original(self, row, new, old)

    monkeypatch.setattr(pod_updates.PodUpdates, "_update", update)


def _with_counted_confirmations(monkeypatch: pytest.MonkeyPatch) -> None:
    original = pod_updates.PodUpdates.put

    def put(self: pod_updates.PodUpdates, new: k.Pod) -> None:
        self._events[Event.POD_REMOVED] += new.key in self._pods.row_of
        original(self, new)

    monkeypatch.setattr(pod_updates.PodUpdates, "put", put)


def _with_volumes_put(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Cluster.apply

    def apply(self: Cluster, edit: Edit) -> None:
        original(self, Put(edit.obj) if isinstance(edit, AssumeVolume) else edit)

    monkeypatch.setattr(Cluster, "apply", apply)


FAULTS = {
    "1: a stale update takes an assumed pod off its node": _without_assumed_state,
    "2: a confirmation counts as a pod gone": _with_counted_confirmations,
    "12: a repeated object counts as a change": lambda patch: patch.setattr(cluster_module, "has_same_content", _never),
    "15: an assumed volume is put as if it was reported": _with_volumes_put,
    "15: an update clears an assumed volume": lambda patch: patch.setattr(
        AssumedVolumes, "update", lambda self, new: (self.drop((new.KIND, new.key)), new)[1]
    ),
    "15: a pod that leaves keeps its assumed volumes": lambda patch: patch.setattr(AssumedVolumes, "end", _never),
    "16: an update releases a hold": lambda patch: patch.setattr(
        pod_updates.PodUpdates, "_update_nomination", lambda self, _old, new: self._free_hold(new.key)
    ),
    "19: a resize by status is not seen": lambda patch: patch.setattr(
        object_versions, "resized_amounts", lambda _pod: None
    ),
    "21: an update after a removal makes a ghost": lambda patch: patch.setattr(RemovedUids, "__contains__", _never),
    "an older version is applied": lambda patch: patch.setattr(pod_updates, "is_older", _never),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_streams_find_every_known_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)  # type: ignore[no-untyped-call]
    with pytest.raises(AssertionError):
        check_streams(range(STREAMS))


# The same, one finding at a time ------------------------------------------------------------------------------------


def versioned(obj: k.Pod, version: int, uid: str = "u1") -> k.Pod:
    return replace(obj, metadata=replace(obj.metadata, uid=uid, resource_version=str(version)))


def test_an_assumed_pod_stays_on_its_node_until_it_is_confirmed() -> None:
    cluster = Cluster([node("n", zone="a"), versioned(pod("p"), 5)])
    cluster.apply(Bind("default/p", "n", 7))
    placed = list(cluster.events)
    cluster.apply(Put(replace(versioned(pod("p"), 6), status=k.PodStatus(phase="Pending", conditions=[]))))
    assert cluster.pods.node_names[cluster.pod_row("default/p")] == "n"
    confirmed = versioned(pod("p", on="n", labels={ZONE: "a"}), 7)
    cluster.apply(Put(confirmed))
    row = cluster.pod_row("default/p")
    assert int(cluster.pods.start[row]) == 7, "the start of the binding stays until the pod reports its own"
    assert cluster.events[Event.POD_REMOVED] == placed[Event.POD_REMOVED]
    assert cluster.pod("default/p") == confirmed
    cluster.apply(Put(versioned(pod("p"), 5)))
    assert cluster.pod("default/p") == confirmed


def test_a_confirmation_moves_label_counts() -> None:
    selector = k.LabelSelector(match_labels={ZONE: "a"})
    term = k.PodAffinityTerm(label_selector=selector, topology_key=ZONE)
    avoiding = pod("other", affinity=k.Affinity(pod_anti_affinity=k.PodAffinity(required=[term])))
    cluster = Cluster([node("n", zone="a"), versioned(pod("p"), 1), avoiding])
    cluster.apply(Bind("default/p", "n"))
    assert Engine(cluster).decide("default/other").node == "n"
    cluster.apply(Put(versioned(pod("p", on="n", labels={ZONE: "a"}), 2)))
    assert Engine(cluster).decide("default/other").node is None


def test_a_pod_with_another_uid_is_another_pod() -> None:
    cluster = Cluster([node("n"), versioned(pod("p"), 1)])
    cluster.apply(Bind("default/p", "n"))
    cluster.apply(Put(versioned(pod("p"), 9, uid="u2")))
    assert cluster.pods.node_names[cluster.pod_row("default/p")] is None
    cluster.apply(Remove("Pod", "default/p", "u1"))
    assert "default/p" in cluster.pods.row_of, "the removal of the earlier pod comes late"


def test_finished_pods_do_not_come_back_and_count_in_their_group() -> None:
    group_label = {"scheduling.x-k8s.io/pod-group": "g"}
    done = versioned(pod("p", on="n", phase="Succeeded", labels=group_label), 5)
    cluster = Cluster([node("n"), pod_group("g", 2), versioned(pod("p", on="n", labels=group_label), 4), done])
    cluster.apply(Put(versioned(pod("p", on="n", labels=group_label), 4)))
    assert "default/p" not in cluster.pods.row_of
    assert [list(members) for members in cluster.groups.finished.values()] == [["default/p"]]
    cluster.apply(Remove("Pod", "default/p", "u1"))
    assert not cluster.groups.finished


def test_our_own_nomination_keeps_the_hold_of_the_session() -> None:
    cluster = Cluster([node("n"), node("m"), versioned(pod("p"), 1)])
    hold = Hold("default/p", "n", 99, 5)
    cluster.apply(hold)
    nominated = replace(versioned(pod("p"), 2), status=k.PodStatus(phase="Pending", nominated_node_name="n"))
    cluster.apply(Put(nominated))
    assert cluster.holds["default/p"] == hold
    other = replace(versioned(pod("p"), 3), status=k.PodStatus(phase="Pending", nominated_node_name="m"))
    cluster.apply(Put(other))
    assert cluster.holds["default/p"] == Hold("default/p", "m")
    cluster.apply(Put(versioned(pod("p"), 4)))
    assert not cluster.holds


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
def test_pending_resizes_count_as_in_kube_scheduler(reason: str) -> None:
    """A deferred resize counts with the largest of desired, allocated and actual; an infeasible one without desired."""
    amounts = k.ResourceRequirements(requests={"cpu": "1"})
    status = k.PodStatus(
        phase="Running",
        container_statuses=[k.ContainerStatus(name="main", allocated_resources={"cpu": "1"}, resources=amounts)],
        conditions=[k.Condition(type="PodResizePending", status="True", reason=reason)],
    )
    cluster = Cluster([node("n"), versioned(pod("p", "1", on="n"), 1)])
    cluster.apply(Put(replace(versioned(pod("p", "3", on="n"), 2), status=status)))
    used = int(cluster.nodes.used[0, cluster.node_row("n")])
    assert used == (3000 if reason == "Deferred" else 1000)


def test_a_resize_that_frees_room_is_an_event() -> None:
    amounts = k.ResourceRequirements(requests={"cpu": "1"})
    status = k.ContainerStatus(name="main", allocated_resources={"cpu": "3"}, resources=amounts)
    before = replace(versioned(pod("p", "1", on="n"), 1), status=k.PodStatus(container_statuses=[status]))
    cluster = Cluster([node("n"), before])
    assert int(cluster.nodes.used[0, cluster.node_row("n")]) == 3000
    freed = cluster.events[Event.POD_REMOVED]
    done = replace(status, allocated_resources={"cpu": "1"})
    cluster.apply(Put(replace(versioned(before, 2), status=k.PodStatus(container_statuses=[done]))))
    assert int(cluster.nodes.used[0, cluster.node_row("n")]) == 1000
    assert cluster.events[Event.POD_REMOVED] == freed + 1


@pytest.mark.parametrize(
    "poison",
    [
        pod("p", "much"),
        replace(pod("p"), status=k.PodStatus(start_time="yesterday")),
        pod("p", created="once"),
        node("m", "much"),
    ],
)
def test_a_malformed_object_changes_nothing(poison: k.Object) -> None:
    known = [node("n"), versioned(pod("p"), 1), pod("q", on="n")]
    cluster, untouched = Cluster(known), Cluster(known)
    with pytest.raises(InputError):
        cluster.apply(Put(poison))
    assert cluster_state(cluster) == cluster_state(untouched)
    assert np.array_equal(cluster.nodes.used, untouched.nodes.used)
    assert Engine(cluster).place(["default/p"])[0].node == "n"


def test_watched_objects_that_cannot_be_read_are_set_aside() -> None:
    cluster = Cluster([node("n")])
    cluster.observe(Put(pod("p", "much")))
    assert cluster.set_aside == {("Pod", "default/p"): '"much" is not a quantity (want for example 500m or 2Gi)'}
    cluster.observe(Put(pod("p", "1")))
    assert not cluster.set_aside
    assert "default/p" in cluster.pods.row_of
    cluster.observe(Put(node("n", "many")))
    cluster.observe(Remove("Node", "n"))
    assert not cluster.set_aside


def test_an_object_is_gone_when_another_one_of_its_name_cannot_be_read() -> None:
    """A kind that is listed again reports the new pod without the removal of the old one."""
    cluster = Cluster([node("n"), versioned(pod("p"), 1, "first")])
    cluster.observe(Put(versioned(pod("p", "much"), 2, "second")))
    assert "default/p" not in cluster.pods.row_of
    cluster.observe(Remove("Pod", "default/p", "second"))
    assert not cluster.set_aside
    assert "default/p" not in cluster.pods.row_of
