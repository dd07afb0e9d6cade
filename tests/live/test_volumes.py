"""Pods with volumes: claims are bound or provisioned before the pods are bound."""

from __future__ import annotations

import pytest

from tests.support.api_faults import Fault, faults, refused
from tests.support.builders import COSCHEDULING_LABEL
from tests.support.live_runs import LiveRun, play, quick_policy
from tests.support.volumes import DYNAMIC, claim, pod_with_claims, storage_classes, volume

SELECTED = "volume.kubernetes.io/selected-node"


def add_pod(run: LiveRun, name: str, *claims: str, **how: object) -> str:
    made = pod_with_claims(name, *claims, schedulerName="tutti", **how)
    run.objects.create(made)
    return made.key


def selected(run: LiveRun, name: str) -> str:
    annotations = run.objects.get("PersistentVolumeClaim", f"default/{name}")["metadata"].get("annotations") or {}
    return str(annotations.get(SELECTED, ""))


def provision(run: LiveRun, name: str) -> None:
    """Make the volume of a claim for its node, and bind it."""
    uid = run.objects.get("PersistentVolumeClaim", f"default/{name}")["metadata"]["uid"]
    run.objects.create(volume(f"pv-{name}", on=selected(run, name)))
    reference = {"namespace": "default", "name": name, "uid": uid}
    run.objects.patch("PersistentVolume", f"pv-{name}", {"spec": {"claimRef": reference}})
    bind_claim(run, name, f"pv-{name}")


def bind_claim(run: LiveRun, name: str, volume_name: str) -> None:
    """Bind a claim, as the volume controller does."""
    change = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume_name},
        "status": {"phase": "Bound"},
    }
    run.objects.patch("PersistentVolumeClaim", f"default/{name}", change)


def prepare(run: LiveRun, *claims: str, nodes: tuple[str, ...] = ("n1",)) -> None:
    run.add_nodes(*nodes)
    for each in storage_classes():
        run.objects.create(each)
    for name in claims:
        run.objects.create(claim(name, DYNAMIC))


def test_a_pod_is_bound_when_its_claim_is() -> None:
    async def scene(run: LiveRun) -> None:
        prepare(run, "c")
        scheduler = await run.started()
        key = add_pod(run, "a", "c")
        await run.until(lambda: selected(run, "c") == "n1")
        await run.until_bound(run.add_pods("other"))
        assert not run.bound([key])
        provision(run, "c")
        await run.until_bound([key])
        await run.until_quiet(scheduler)

    play(scene)


def test_a_volume_that_exists_gets_a_reference_to_its_claim() -> None:
    async def scene(run: LiveRun) -> None:
        prepare(run)
        run.objects.create(volume("v", on="n1"))
        run.objects.create(claim("c"))
        await run.started()
        key = add_pod(run, "a", "c")
        await run.until(lambda: run.objects.get("PersistentVolume", "v")["spec"].get("claimRef"))
        reference = run.objects.get("PersistentVolume", "v")["spec"]["claimRef"]
        assert (reference["namespace"], reference["name"]) == ("default", "c")
        bind_claim(run, "c", "v")
        await run.until_bound([key])

    play(scene)


def test_a_gang_is_bound_when_all_its_claims_are() -> None:
    async def scene(run: LiveRun) -> None:
        prepare(run, "c0", "c1", nodes=("n1", "n2"))
        await run.started()
        run.add_group("g", 3)
        labels = {COSCHEDULING_LABEL: "g"}
        gang = [add_pod(run, f"g-{n}", *([f"c{n}"] if n < 2 else []), labels=labels) for n in range(3)]
        await run.until(lambda: selected(run, "c0") and selected(run, "c1"))
        provision(run, "c0")
        await run.until_bound(run.add_pods("other"))
        assert not run.bound(gang)
        provision(run, "c1")
        await run.until_bound(gang)

    play(scene)


@pytest.mark.parametrize("drop", ["before", "after"])
def test_the_answer_to_a_claim_is_lost(drop: str) -> None:
    async def scene(run: LiveRun) -> None:
        prepare(run, "c")
        run.server.find_fault = faults(
            lambda each: each.kind == "PersistentVolumeClaim" and each.is_write, Fault(drop=drop)
        )
        scheduler = await run.started(policy=quick_policy(avoided_for=60_000_000))
        key = add_pod(run, "a", "c")
        await run.until(lambda: selected(run, "c") == "n1")
        provision(run, "c")
        await run.until_bound([key])
        assert scheduler.binder.refused_count == 0

    play(scene)


def test_a_refused_claim_is_tried_again() -> None:
    async def scene(run: LiveRun) -> None:
        prepare(run, "c")
        conflict = refused(409, "Conflict", "the object has been modified")
        run.server.find_fault = faults(lambda each: each.kind == "PersistentVolumeClaim" and each.is_write, conflict)
        await run.started()
        key = add_pod(run, "a", "c")
        await run.until(lambda: selected(run, "c") == "n1")
        provision(run, "c")
        await run.until_bound([key])

    play(scene)


def test_a_provisioner_that_gives_a_claim_back() -> None:
    """It found no room for the node; the pod is planned again."""

    async def scene(run: LiveRun) -> None:
        prepare(run, "c", nodes=("n1", "n2"))
        await run.started(policy=quick_policy(avoided_for=60_000_000))
        key = add_pod(run, "a", "c")
        await run.until(lambda: selected(run, "c"))
        first = selected(run, "c")
        run.objects.patch("PersistentVolumeClaim", "default/c", {"metadata": {"annotations": {SELECTED: None}}})
        await run.until(lambda: selected(run, "c") not in ("", first))
        provision(run, "c")
        await run.until_bound([key])

    play(scene)


def test_a_provisioner_that_gives_one_claim_of_a_gang_back() -> None:
    """Only that pod avoids its node: the other one is pinned by its own claim to a node that is not at fault."""

    async def scene(run: LiveRun) -> None:
        prepare(run, "c0", "c1", nodes=("n1", "n2", "n3"))
        await run.started(policy=quick_policy(avoided_for=3_600_000_000))
        run.add_group("g", 2)
        labels = {COSCHEDULING_LABEL: "g"}
        gang = [add_pod(run, f"g-{n}", f"c{n}", labels=labels, cpu="3") for n in range(2)]
        await run.until(lambda: selected(run, "c0") and selected(run, "c1"))
        first = [selected(run, name) for name in ("c0", "c1")]
        run.objects.patch("PersistentVolumeClaim", "default/c1", {"metadata": {"annotations": {SELECTED: None}}})
        await run.until(lambda: selected(run, "c1") not in ("", first[1]))
        provision(run, "c0")
        provision(run, "c1")
        await run.until_bound(gang)
        assert run.node_of(gang[0]) == first[0]

    play(scene)


def test_the_pod_is_deleted_while_its_claim_is_provisioned() -> None:
    async def scene(run: LiveRun) -> None:
        prepare(run, "c")
        scheduler = await run.started()
        key = add_pod(run, "a", "c", cpu="4")
        await run.until(lambda: selected(run, "c"))
        run.objects.delete("Pod", key)
        await run.until_bound(run.add_pods("next", cpu="4"))
        await run.until_quiet(scheduler)

    play(scene)


def test_a_new_process_goes_on_with_claims_that_were_written() -> None:
    async def scene(run: LiveRun) -> None:
        prepare(run, "c", nodes=("n1", "n2"))
        await run.started()
        key = add_pod(run, "a", "c")
        await run.until(lambda: selected(run, "c"))
        first = selected(run, "c")
        await run.kill()
        await run.started("two")
        provision(run, "c")
        await run.until_bound([key])
        assert run.node_of(key) == first

    play(scene)


def test_a_volume_that_the_node_does_not_reach() -> None:
    """The provisioner made it elsewhere, or the node lost its label: the pod goes to a node that reaches it."""

    async def scene(run: LiveRun) -> None:
        prepare(run, "c", nodes=("n1", "n2"))
        scheduler = await run.started()
        key = add_pod(run, "a", "c")
        await run.until(lambda: selected(run, "c"))
        chosen = selected(run, "c")
        (other,) = {"n1", "n2"} - {chosen}
        run.objects.create(volume("v", on=other))
        bind_claim(run, "c", "v")
        await run.until_bound([key])
        assert run.node_of(key) == other
        assert scheduler.binder.refused_count == 1

    play(scene)


def test_claims_that_are_being_provisioned_are_named() -> None:
    """The gang was begun by a process that is gone, and its node takes no pods any more."""

    async def scene(run: LiveRun) -> None:
        prepare(run, "c0", "c1", nodes=("n1", "n2"))
        await run.started()
        run.add_group("g", 2)
        labels = {COSCHEDULING_LABEL: "g"}
        gang = [add_pod(run, f"g-{n}", f"c{n}", labels=labels, cpu="3") for n in range(2)]
        await run.until(lambda: selected(run, "c0") and selected(run, "c1"))
        nodes = [selected(run, f"c{n}") for n in range(2)]
        await run.kill()
        run.objects.patch("Node", "n1", {"spec": {"unschedulable": True}})
        await run.started("two")
        claims = f"claim default/c0 to node {nodes[0]}, claim default/c1 to node {nodes[1]}"
        note = f"Volumes that are being provisioned tie {claims}."
        await run.until(lambda: all(run.condition(key).get("message", "").endswith(note) for key in gang))

    play(scene)


def test_claims_that_stay_after_a_failure_pin_the_gang() -> None:
    """A node is cordoned while its claims are provisioned: no pod is bound, and the reason says what pins the gang."""

    async def scene(run: LiveRun) -> None:
        prepare(run, "c0", "c1", nodes=("n1", "n2"))
        scheduler = await run.started()
        run.add_group("g", 2)
        labels = {COSCHEDULING_LABEL: "g"}
        gang = [add_pod(run, f"g-{n}", f"c{n}", labels=labels, cpu="3") for n in range(2)]
        await run.until(lambda: selected(run, "c0") and selected(run, "c1"))
        pinned = selected(run, "c1")
        run.objects.patch("Node", pinned, {"spec": {"unschedulable": True}})
        await run.until(lambda: scheduler.newest.problem_of_node(pinned, None))
        run.add_nodes("n3")
        provision(run, "c0")
        provision(run, "c1")
        reason = "1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were unschedulable"
        await run.until(lambda: all(reason in run.condition(key).get("message", "") for key in gang))
        assert not run.bound(gang)
        run.objects.patch("Node", pinned, {"spec": {"unschedulable": None}})
        await run.until_bound(gang)
        assert run.node_of(gang[1]) == pinned

    play(scene)
