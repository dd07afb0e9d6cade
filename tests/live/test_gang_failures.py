"""What goes wrong while a gang is bound: nodes, pods, groups, kubelets and other schedulers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.support.api_faults import ApiRequest, Fault, refused
from tests.support.builders import owner_reference
from tests.support.live_runs import LiveRun, play, quick_policy
from tutti.live.scheduler import LiveScheduler

OWNER = ("ReplicaSet", "workers")
PATIENT = quick_policy(partial_for=600_000_000)
"""A policy that leaves partial gangs alone for the length of a test."""


class HeldBindings:
    """Bindings that wait at the server until `release`; the count of those that came is in `keys`."""

    def __init__(self, run: LiveRun, is_held: Callable[[ApiRequest], bool] = lambda request: True) -> None:
        self.keys: list[str] = []
        self._is_held, self._open = is_held, asyncio.Event()
        run.server.find_fault = self._find

    def _find(self, request: ApiRequest) -> Fault | None:
        if not request.is_binding or not self._is_held(request):
            return None
        self.keys.append(request.key)
        return Fault(wait=self._open)

    def release(self) -> None:
        self._open.set()


async def begin_gang(run: LiveRun, count: int = 4, **how: object) -> tuple[LiveScheduler, HeldBindings, list[str]]:
    """Start a scheduler that sends one binding at a time, and a gang; its first binding has arrived and waits."""
    scheduler = await run.started(max_in_flight=1, policy=PATIENT)
    held = HeldBindings(run)
    gang = run.add_gang("g", count, owner=OWNER, **how)
    await run.until(lambda: held.keys, "the first binding")
    return scheduler, held, gang


def planned_node(run: LiveRun) -> str:
    """Return the node of the first binding."""
    return str(run.server.sent(part="binding")[0].body["target"]["name"])


def test_a_node_that_goes_before_its_members_are_sent() -> None:
    """The others are bound as planned, and the members of that node elsewhere."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", cpu="2")
        scheduler, held, gang = await begin_gang(run)
        gone = "n2" if planned_node(run) == "n1" else "n1"
        run.objects.remove("Node", gone)
        await run.until(lambda: scheduler.newest.node(gone) is None)
        run.add_nodes("n3", cpu="2")
        held.release()
        await run.until_bound(gang)
        assert {run.node_of(key) for key in gang} == {"n1", "n2", "n3"} - {gone}
        assert not [request for request in run.server.sent(part="binding") if request.body["target"]["name"] == gone]

    play(scene)


def test_a_node_that_goes_after_its_members_are_sent() -> None:
    """The garbage collector removes the pods of the node, and the replacements complete the gang."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", cpu="2")
        await run.started(policy=PATIENT)
        held = HeldBindings(run)
        gang = run.add_gang("g", 4, owner=OWNER)
        await run.until(lambda: len(held.keys) == 4)
        run.objects.remove("Node", "n2")
        held.release()
        await run.until_bound(gang)
        lost = [key for key in gang if run.node_of(key) == "n2"]
        assert len(lost) == 2
        run.add_nodes("n3", cpu="2")
        for key in lost:
            run.objects.remove("Pod", key)
        replacements = run.add_members("g", [4, 5], owner=OWNER)
        await run.until_bound(replacements)
        assert {run.node_of(key) for key in replacements} == {"n3"}

    play(scene)


@pytest.mark.parametrize("taint", ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])
def test_a_node_that_is_not_ready_any_more(taint: str) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", cpu="2")
        scheduler, held, gang = await begin_gang(run)
        sick = "n2" if planned_node(run) == "n1" else "n1"
        run.objects.patch("Node", sick, {"spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]}})
        await run.until(lambda: scheduler.newest.problem_of_node(sick, None))
        run.add_nodes("n3", cpu="2")
        held.release()
        await run.until_bound(gang)
        assert sick not in {run.node_of(key) for key in gang}

    play(scene)


def test_a_kubelet_rejects_a_member() -> None:
    """The pod has failed; its controller's replacement completes the gang, and the others stay."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        scheduler = await run.started()
        gang = run.add_gang("g", 4, owner=OWNER)
        await run.until_bound(gang)
        run.run_pods(gang[:3])
        run.fail_pod(gang[3], "OutOfcpu")
        await run.until_quiet(scheduler)
        await run.until_bound(run.add_members("g", [4], owner=OWNER))
        await run.until_quiet(scheduler)
        assert not run.server.sent(method="DELETE")

    play(scene)


def test_a_kubelet_rejects_a_member_before_the_last_is_bound() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        scheduler = await run.started(policy=PATIENT)
        held = HeldBindings(run, lambda request: request.key == "default/g-2")
        gang = run.add_gang("g", 3, owner=OWNER)
        await run.until(lambda: held.keys and len(run.bound()) == 2)
        run.fail_pod(gang[0], "OutOfcpu")
        held.release()
        await run.until_bound(run.add_members("g", [3], owner=OWNER))
        await run.until_bound(gang)
        await run.until_quiet(scheduler)
        assert not run.server.sent(method="DELETE")

    play(scene)


def test_a_pod_is_deleted_before_it_is_bound() -> None:
    """The gang goes on; the replacement completes it."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler, held, gang = await begin_gang(run)
        run.objects.delete("Pod", gang[3])
        await run.until(lambda: scheduler.newest.pod(gang[3]) is None)
        held.release()
        await run.until_bound(gang[:3])
        await run.until_bound(run.add_members("g", [4], owner=OWNER))
        assert gang[3] not in {request.key for request in run.server.sent(part="binding")}

    play(scene)


def test_a_pod_is_deleted_before_its_gang_has_begun() -> None:
    """Nothing is sent: the gang is one pod short."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        busy = run.add_pods("busy", cpu="0")
        held = HeldBindings(run, lambda request: request.key == busy[0])
        scheduler = await run.started(max_in_flight=1)
        gang = run.add_gang("g", 4)
        await run.until(lambda: scheduler.binder.waiting == 5)
        run.objects.delete("Pod", gang[3])
        await run.until(lambda: scheduler.newest.pod(gang[3]) is None)
        held.release()
        await run.until_bound(busy)
        await run.until_quiet(scheduler)
        assert not run.bound(gang[:3])
        await run.until_bound([*gang[:3], *run.add_members("g", [4])])

    play(scene)


def is_group_deleted(scheduler: LiveScheduler, key: str) -> bool:
    pod = scheduler.newest.pod(key)
    return pod is not None and scheduler.newest.is_group_deleted(pod)


def test_a_group_under_deletion_admits_nobody() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        busy = run.add_pods("busy", cpu="0")
        held = HeldBindings(run, lambda request: request.key == busy[0])
        scheduler = await run.started(max_in_flight=1)
        gang = run.add_gang("g", 4)
        await run.until(lambda: scheduler.binder.waiting == 5)
        kind = "PodGroup.scheduling.x-k8s.io"
        run.objects.patch(kind, "default/g", {"metadata": {"finalizers": ["example.com/wait"]}})
        run.objects.delete(kind, "default/g")
        await run.until(lambda: is_group_deleted(scheduler, gang[0]))
        held.release()
        await run.until_bound(busy)
        await run.until_quiet(scheduler)
        assert not run.bound(gang)
        assert {request.key for request in run.server.sent(part="binding")} == set(busy)

    play(scene)


def test_a_group_is_gone_in_the_middle() -> None:
    """A gang that has begun is bound whole by its plan."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        _, held, gang = await begin_gang(run)
        run.objects.remove("PodGroup.scheduling.x-k8s.io", "default/g")
        held.release()
        await run.until_bound(gang)

    play(scene)


def test_a_member_that_is_refused_for_good_undoes_the_gang() -> None:
    """Its bound pods are evicted, DisruptionTarget first, so that a Job's podFailurePolicy can ignore them."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", "n3")
        fault = refused(403, "Forbidden", "policy")
        run.server.find_fault = lambda each: fault if each.is_binding and each.key == "default/g-1" else None
        await run.started()
        gang = run.add_gang("g", 3, owner=OWNER)
        others = [gang[0], gang[2]]
        await run.until(lambda: all(run.pod(key)["metadata"].get("deletionTimestamp") for key in others))
        for key in others:
            assert run.condition(key, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
            writes = [(each.method, each.part) for each in run.server.sent("Pod") if each.key == key and each.is_write]
            assert writes[-2:] == [("PATCH", "status"), ("DELETE", "")]

    play(scene)


def test_bare_pods_of_a_partial_gang_are_reported() -> None:
    """Nobody would create them again, so they stay."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", "n3")
        fault = refused(403, "Forbidden", "policy")
        run.server.find_fault = lambda each: fault if each.is_binding and each.key == "default/g-1" else None
        scheduler = await run.started()
        gang = run.add_gang("g", 3)
        await run.until(lambda: len(run.events("PartialGang")) == 2)
        assert {name for name, _ in run.events("PartialGang")} == {"g-0", "g-2"}
        run.server.find_fault = lambda each: None
        await run.until_bound(gang)
        await run.until_quiet(scheduler)
        assert not run.server.sent(method="DELETE")

    play(scene)


def test_another_scheduler_takes_the_room() -> None:
    """Kubelets refuse what is too much; the replacements wait for room, and are bound when there is some."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(policy=PATIENT)
        held = HeldBindings(run)
        gang = run.add_gang("g", 4, owner=OWNER)
        await run.until(lambda: len(held.keys) == 4)
        (other,) = run.add_pods("other", cpu="3", on="n1", schedulerName="default-scheduler")
        held.release()
        await run.until_bound(gang)
        run.run_pods(gang[:1])
        for key in gang[1:]:
            run.fail_pod(key, "OutOfcpu")
        replacements = run.add_members("g", [4, 5, 6], owner=OWNER)
        await run.until(lambda: all(run.condition(key) for key in replacements))
        await run.until_quiet(scheduler)
        assert not run.bound(replacements)
        assert {run.condition(key)["reason"] for key in replacements} == {"Unschedulable"}
        run.objects.remove("Pod", other)
        await run.until_bound(replacements)

    play(scene)


def test_a_gang_of_a_job_is_bound_when_its_owner_creates_it_again() -> None:
    """All pods of a gang vanish and come again with the same names while bindings are under way."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        owner = owner_reference("Job", "train")
        scheduler, held, gang = await begin_gang(run)
        for key in gang:
            run.objects.remove("Pod", key)
        run.add_members("g", range(4), owner=owner)
        held.release()
        await run.until_bound(gang)
        await run.until_quiet(scheduler)
        assert {run.pod(key)["metadata"]["ownerReferences"][0]["name"] for key in gang} == {"train"}

    play(scene)
