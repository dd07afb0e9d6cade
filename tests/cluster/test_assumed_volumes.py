"""Assumed volumes: shown until a watch reports a binding or the pod leaves its node."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.support.builders import node, pod
from tests.support.cluster_state import cluster_state, rebuilt
from tests.support.volumes import (
    DYNAMIC,
    bound_volume,
    claim,
    pod_with_claims,
    relabelled,
    selected_claim,
    storage_classes,
    volume,
)
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import AssumeVolume, Bind, Edit, Put, Remove, Unbind
from tutti.cluster.events import Event
from tutti.exceptions import ConflictError, NotFoundError
from tutti.kube import objects as k

VOLUME, CLAIM = volume("v", version=10), claim("c", DYNAMIC, version=10)
BOUND, SELECTED = bound_volume(VOLUME, "other", version=10), selected_claim(CLAIM, "n", version=10)
CASES = [pytest.param(VOLUME, BOUND, id="volume"), pytest.param(CLAIM, SELECTED, id="claim")]


def assumed_cluster(reported: k.Object, assumed: k.Object) -> Cluster:
    cluster = Cluster(
        [*storage_classes(), node("n"), node("m"), reported, pod_with_claims("p", "c"), pod_with_claims("q", "c")]
    )
    cluster.apply(Bind("default/p", "n"))
    cluster.apply(AssumeVolume(assumed, "default/p"))
    return cluster


def shown(cluster: Cluster, obj: k.Object) -> k.Object | None:
    return cluster.objects[obj.KIND].get(obj.key)


def with_version(obj: k.Object, version: int) -> k.Object:
    return replace(obj, metadata=replace(obj.metadata, resource_version=str(version)))


def confirmed(obj: k.Object, version: int = 20) -> k.Object:
    """The assumed object as a watch reports it, in another phase."""
    return replace(with_version(obj, version), status=k.ClaimStatus(phase="Bound"))


@pytest.mark.parametrize(("reported", "assumed"), CASES)
def test_an_assumed_object_is_shown_and_the_reported_one_is_kept(reported: k.Object, assumed: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    assert shown(cluster, reported) == assumed
    assert cluster.assumed_volumes.reported(assumed) == reported
    assert cluster.assumed_volumes.by_pod == {"default/p": [(reported.KIND, reported.key)]}
    assert cluster_state(rebuilt(cluster)) == cluster_state(cluster)
    twin = cluster.copy()
    twin.apply(Unbind("default/p"))
    assert shown(twin, reported) == reported
    assert shown(cluster, reported) == assumed


@pytest.mark.parametrize(("reported", "assumed"), CASES)
def test_updates_without_the_change_are_shown_with_it(reported: k.Object, assumed: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    events = list(cluster.events)
    for update in (reported, relabelled(reported, "stale", version=9), with_version(reported, 11)):
        cluster.apply(Put(update))
    assert shown(cluster, reported) == with_version(assumed, 11)
    assert cluster.events == events, "nothing has changed but the version"
    cluster.apply(Put(relabelled(reported, "new", version=12)))
    assert shown(cluster, reported) == relabelled(assumed, "new", version=12)
    assert cluster.events[Event.VOLUMES] == events[Event.VOLUMES] + 1
    cluster.apply(Unbind("default/p"))
    assert shown(cluster, reported) == relabelled(reported, "new", version=12)


@pytest.mark.parametrize(("reported", "assumed"), CASES)
def test_a_confirmation_ends_the_assumption(reported: k.Object, assumed: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    events = list(cluster.events)
    cluster.apply(Put(with_version(assumed, 20)))
    assert cluster.events == events, "the confirmation is what was shown already"
    cluster.apply(Unbind("default/p"))
    assert shown(cluster, reported) == with_version(assumed, 20), "the truth does not depend on the pod"
    cluster.apply(Put(with_version(reported, 21)))
    assert shown(cluster, reported) == with_version(reported, 21)


@pytest.mark.parametrize(
    ("reported", "assumed", "truth"),
    [
        (VOLUME, BOUND, bound_volume(VOLUME, "somebody-else", version=20)),
        (CLAIM, SELECTED, selected_claim(CLAIM, "m", version=20)),
        (CLAIM, SELECTED, replace(with_version(CLAIM, 20), spec=replace(CLAIM.spec, volume_name="v"))),
        (VOLUME, BOUND, replace(VOLUME, metadata=replace(VOLUME.metadata, uid="new", resource_version="20"))),
        (CLAIM, SELECTED, replace(CLAIM, metadata=replace(CLAIM.metadata, uid="new", resource_version="20"))),
    ],
    ids=["claimRef", "selected node", "volumeName", "volume uid", "claim uid"],
)
def test_a_contradiction_ends_the_assumption(reported: k.Object, assumed: k.Object, truth: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    cluster.apply(Put(truth))
    assert shown(cluster, reported) == truth
    assert not cluster.assumed_volumes.by_pod
    cluster.apply(Unbind("default/p"))
    assert shown(cluster, reported) == truth


@pytest.mark.parametrize(("reported", "assumed"), CASES)
def test_a_removal_ends_the_assumption(reported: k.Object, assumed: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    cluster.apply(Remove(reported.KIND, reported.key, "an earlier object"))
    assert shown(cluster, reported) == assumed
    cluster.apply(Remove(reported.KIND, reported.key, reported.metadata.uid))
    cluster.apply(Unbind("default/p"))
    assert shown(cluster, reported) is None
    assert not cluster.assumed_volumes.by_pod


def other_uid(name: str) -> k.Pod:
    return pod_with_claims(name, "c", uid="another pod")


LEAVING: dict[str, Callable[[], Edit]] = {
    "unbound": lambda: Unbind("default/p"),
    "removed": lambda: Remove("Pod", "default/p"),
    "finished": lambda: Put(pod_with_claims("p", "c", on="n", phase="Succeeded")),
    "replaced": lambda: Put(other_uid("p")),
    "on another node": lambda: Put(pod_with_claims("p", "c", on="m")),
}


@pytest.mark.parametrize(("reported", "assumed"), CASES)
@pytest.mark.parametrize("leaving", LEAVING)
def test_a_pod_that_leaves_its_node_gives_its_volumes_back(leaving: str, reported: k.Object, assumed: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    before, events = cluster_state(cluster), list(cluster.events)
    mark = cluster.mark()
    cluster.apply(LEAVING[leaving]())
    assert shown(cluster, reported) == reported
    assert not cluster.assumed_volumes.by_pod
    assert cluster.events[Event.VOLUMES] == events[Event.VOLUMES] + 1
    cluster.rollback(mark)
    assert cluster_state(cluster) == before
    assert cluster.events == events


@pytest.mark.parametrize(("reported", "assumed"), CASES)
def test_the_confirmation_of_the_binding_keeps_the_volumes(reported: k.Object, assumed: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    cluster.apply(Put(pod_with_claims("p", "c", on="n", labels={"zone": "a"})))
    assert shown(cluster, reported) == assumed
    cluster.apply(Put(confirmed(assumed)))
    assert shown(cluster, reported) == confirmed(assumed)
    assert not cluster.assumed_volumes.by_pod


@pytest.mark.parametrize(("reported", "assumed"), CASES)
def test_marks_nest(reported: k.Object, assumed: k.Object) -> None:
    cluster = Cluster([*storage_classes(), node("n"), node("m"), reported, pod_with_claims("p", "c"), pod("q")])
    steps: list[list[Edit]] = [
        [Bind("default/p", "n"), AssumeVolume(assumed, "default/p")],
        [Bind("default/q", "n"), AssumeVolume(assumed, "default/q")],
        [Put(relabelled(reported, "new", version=11))],
        [Unbind("default/p")],
        [Put(confirmed(assumed))],
        [Remove(reported.KIND, reported.key)],
        [Unbind("default/q"), Put(with_version(reported, 30))],
    ]
    pictures = []
    for step in steps:
        pictures.append((cluster.mark(), cluster_state(cluster), list(cluster.events)))
        for edit in step:
            cluster.apply(edit)
        assert cluster_state(rebuilt(cluster)) == cluster_state(cluster)
    while pictures:
        mark, picture, events = pictures.pop()
        cluster.rollback(mark)
        assert cluster_state(cluster) == picture
        assert cluster.events == events


@pytest.mark.parametrize(("reported", "assumed"), CASES)
def test_a_what_if_that_evicts_the_pod_keeps_its_volumes(reported: k.Object, assumed: k.Object) -> None:
    cluster = assumed_cluster(reported, assumed)
    before = cluster_state(cluster)
    mark = cluster.mark()
    cluster.apply(Unbind("default/p", keep_volumes=True))
    assert shown(cluster, reported) == assumed
    assert cluster_state(rebuilt(cluster)) == cluster_state(cluster)
    cluster.apply(Bind("default/p", "n"))
    cluster.apply(Unbind("default/p", keep_volumes=True))
    cluster.apply(Unbind("default/p"))
    assert shown(cluster, reported) == reported, "a pending pod gives its volumes back, too"
    cluster.rollback(mark)
    assert cluster_state(cluster) == before


def test_pods_that_share_a_claim_share_its_assumption() -> None:
    cluster = assumed_cluster(CLAIM, SELECTED)
    cluster.apply(Bind("default/q", "n"))
    events = list(cluster.events)
    cluster.apply(AssumeVolume(SELECTED, "default/q"))
    assert cluster.events == events
    cluster.apply(Unbind("default/p"))
    assert shown(cluster, CLAIM) == SELECTED
    cluster.apply(Unbind("default/q"))
    assert shown(cluster, CLAIM) == CLAIM


def test_a_volume_that_is_reserved_for_the_claim_stays_reserved() -> None:
    """An administrator has written the claimRef without the uid; updates with that claimRef are not a confirmation."""
    reference = k.ObjectReference(kind="PersistentVolumeClaim", namespace="default", name="c")
    reserved = replace(VOLUME, spec=replace(VOLUME.spec, claim_ref=reference))
    assumed = replace(reserved, spec=replace(VOLUME.spec, claim_ref=replace(reference, uid="uid-c")))
    cluster = assumed_cluster(reserved, assumed)
    cluster.apply(Put(reserved))
    cluster.apply(Put(relabelled(reserved, "new", version=11)))
    assert shown(cluster, VOLUME) == relabelled(assumed, "new", version=11)
    cluster.apply(Unbind("default/p"))
    assert shown(cluster, VOLUME) == relabelled(reserved, "new", version=11)


def test_what_is_reported_already_need_not_be_assumed() -> None:
    cluster = assumed_cluster(SELECTED, SELECTED)
    assert shown(cluster, CLAIM) == SELECTED
    assert not cluster.assumed_volumes.by_pod


def test_an_assumption_that_is_made_late_counts_on_top_of_the_newer_object() -> None:
    cluster = assumed_cluster(relabelled(VOLUME, "new", version=15), BOUND)
    assert shown(cluster, VOLUME) == relabelled(BOUND, "new", version=15)


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (AssumeVolume(BOUND, "default/nobody"), NotFoundError),
        (AssumeVolume(bound_volume(VOLUME, "somebody-else"), "default/p"), ConflictError),
        (AssumeVolume(VOLUME, "default/p"), ConflictError),
        (AssumeVolume(bound_volume(volume("w"), "c"), "default/p"), NotFoundError),
        (AssumeVolume(node("n"), "default/p"), NotFoundError),
        (AssumeVolume(storage_classes()[0], "default/p"), ConflictError),
    ],
    ids=["no pod", "another change", "no change", "no volume", "a node", "another kind"],
)
def test_an_assumption_that_cannot_be_made_changes_nothing(edit: AssumeVolume, error: type[Exception]) -> None:
    cluster = assumed_cluster(VOLUME, BOUND)
    before = cluster_state(cluster)
    with pytest.raises(error):
        cluster.apply(edit)
    assert cluster_state(cluster) == before
