"""A Binding that fails: what the scheduler makes of each answer, and of none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.support import memory_pod_requests
from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.live_runs import LiveRun, ShiftedClock, play, quick_policy
from tests.support.memory_objects import Document
from tutti.live.options import LeaseOptions
from tutti.live.scheduler import LiveScheduler

BRIEF = LeaseOptions(retry_period=0.2, duration=10, renew_deadline=9.5)
"""A lease that leaves half a second for a write."""
POLICY = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"


def is_binding(request: ApiRequest) -> bool:
    return request.is_binding


def before_binding(run: LiveRun, act: Callable[[ApiRequest], None]) -> None:
    """Do something when the first binding has arrived, before the server looks at it."""
    todo = [act]

    def find(request: ApiRequest) -> Fault | None:
        if request.is_binding and todo:
            todo.pop()(request)
        return None

    run.server.find_fault = find


async def bind_the_rest(run: LiveRun, scheduler: LiveScheduler) -> str:
    """Fill the cluster with another pod that needs a whole node, and return its node."""
    (key,) = run.add_pods("next", cpu="4")
    await run.until_bound([key])
    await run.until_quiet(scheduler)
    return run.node_of(key)


def target(request: ApiRequest) -> str:
    return str(request.body["target"]["name"])


def test_409_assigned_to_the_planned_node() -> None:
    """An earlier attempt was carried out: the pod is bound, and an event says so."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        before_binding(run, lambda request: memory_pod_requests.bind(run.objects, request.key, request.body))
        scheduler = await run.started()
        (key,) = run.add_pods("a", cpu="4")
        await run.until(lambda: run.events("Scheduled"))
        await run.until_quiet(scheduler)
        assert (scheduler.binder.bound_count, scheduler.binder.refused_count) == (1, 0)
        assert [request.status for request in run.server.sent(part="binding")] == [409]
        assert await bind_the_rest(run, scheduler) != run.node_of(key)

    play(scene)


def test_409_assigned_to_another_node() -> None:
    """The pod stays where it is, and the planned node is free for others."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        planned: list[str] = []

        def bind_elsewhere(request: ApiRequest) -> None:
            planned.append(target(request))
            other = "n2" if planned == ["n1"] else "n1"
            memory_pod_requests.bind(run.objects, request.key, {"target": {"name": other}})

        before_binding(run, bind_elsewhere)
        scheduler = await run.started()
        run.add_pods("a", cpu="4")
        await run.until(run.bound)
        await run.until(lambda: scheduler.binder.refused_count == 1)
        assert await bind_the_rest(run, scheduler) == planned[0]
        assert not [event for event in run.events("Scheduled") if event[0] == "a"]

    play(scene)


def test_409_deleting() -> None:
    """The pod is not bound again, and its room is free."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        before_binding(run, lambda request: run.objects.delete("Pod", request.key) and None)
        scheduler = await run.started()
        run.add_pods("a", cpu="4", finalizers=["example.com/wait"])
        await run.until(lambda: scheduler.binder.refused_count == 1)
        await bind_the_rest(run, scheduler)
        assert [request.status for request in run.server.sent(part="binding")] == [409, 201]

    play(scene)


def test_409_gated() -> None:
    """The pod waits for its gate, and nothing is written to it."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        gates: Document = {"spec": {"schedulingGates": [{"name": "wait"}]}}
        before_binding(run, lambda request: run.objects.patch("Pod", request.key, gates) and None)
        scheduler = await run.started()
        (key,) = run.add_pods("a", cpu="4")
        await run.until(lambda: scheduler.binder.refused_count == 1)
        await run.until_quiet(scheduler)
        assert len(run.server.sent(part="binding")) == 1
        assert not run.server.sent(part="status")
        run.objects.patch("Pod", key, {"spec": {"schedulingGates": None}})
        await run.until_bound([key])

    play(scene)


def test_409_another_uid() -> None:
    """A new pod of the same name is bound by a binding of its own."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")

        def recreate(request: ApiRequest) -> None:
            run.objects.remove("Pod", request.key)
            run.add_pods("a", cpu="4")

        before_binding(run, recreate)
        await run.started()
        (key,) = run.add_pods("a", cpu="4")
        await run.until_bound([key])
        bindings = run.server.sent(part="binding")
        assert [request.status for request in bindings] == [409, 201]
        assert bindings[1].body["metadata"]["uid"] == run.pod(key)["metadata"]["uid"]

    play(scene)


def test_404() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        before_binding(run, lambda request: run.objects.remove("Pod", request.key) and None)
        scheduler = await run.started()
        run.add_pods("a", cpu="4")
        await run.until(lambda: run.server.sent(part="binding"))
        await bind_the_rest(run, scheduler)
        assert [request.status for request in run.server.sent(part="binding")] == [404, 201]

    play(scene)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(refused(422, "Invalid", "Binding is invalid"), id="422"),
        pytest.param(
            refused(403, "Forbidden", "the namespace is being terminated", causes=("NamespaceTerminating",)),
            id="403-namespace",
        ),
        pytest.param(refused(403, "Forbidden", POLICY), id="403-policy"),
        pytest.param(refused(400, "BadRequest", "admission webhook denied it"), id="400"),
    ],
)
def test_refused_for_good(fault: Fault) -> None:
    """The binding is not repeated at once; the pod avoids the node for a while, and is told why it waits."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        run.server.find_fault = faults(is_binding, fault)
        scheduler = await run.started()
        (key,) = run.add_pods("a")
        await run.until_bound([key])
        await run.until_quiet(scheduler)
        first, second = run.server.sent(part="binding")
        assert target(first) != target(second)
        assert run.events("Scheduled")
        assert fault.refusal is not None
        assert any(fault.refusal.message in note for _, note in run.events("FailedScheduling"))

    play(scene)


def test_a_pod_that_avoids_its_nodes_does_not_ask_for_more_nodes() -> None:
    """An autoscaler buys nodes for unschedulable pods; this one lacks no room."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        fault = refused(403, "Forbidden", "policy")
        run.server.find_fault = lambda request: fault if request.is_binding else None
        await run.started(policy=quick_policy(avoided_for=60_000_000))
        keys = [*run.add_pods("a", cpu="100m"), *run.add_gang("g", 2, cpu="100m")]
        await run.until(lambda: all("avoided" in run.condition(key).get("message", "") for key in keys))
        assert {run.condition(key)["reason"] for key in keys} == {"SchedulerError"}

    play(scene)


def test_refused_again_and_again_is_told_once() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        fault = refused(403, "Forbidden", POLICY)
        run.server.find_fault = lambda request: fault if request.is_binding else None
        await run.started(policy=quick_policy(avoided_for=0))
        (key,) = run.add_pods("a")
        await run.until(lambda: len(run.server.sent(part="binding")) >= 4)
        assert run.condition(key)["reason"] == "SchedulerError"
        assert POLICY in run.condition(key)["message"]
        assert len(run.server.sent(part="status")) == 1
        assert len(run.events("FailedScheduling")) == 1

    play(scene)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_servers_are_asked_again(status: int) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.server.find_fault = faults(is_binding, *[refused(status, retry_after=0)] * 3)
        scheduler = await run.started()
        keys = run.add_pods("a")
        await run.until_bound(keys)
        assert scheduler.binder.refused_count == 0
        assert [request.status for request in run.server.sent(part="binding")] == [status] * 3 + [201]

    play(scene)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_stays_broken(status: int) -> None:
    """After some seconds the pod is read, which says that it waits; it is told the answer, and tried again."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        clock, is_well = ShiftedClock(), asyncio.Event()

        def find(request: ApiRequest) -> Fault | None:
            if is_well.is_set() or not request.is_binding:
                return None
            clock.ahead += 5
            return refused(status, message="etcd is away", retry_after=0)

        run.server.find_fault = find
        scheduler = await run.started(clock=clock)
        (key,) = run.add_pods("a")
        await run.until(lambda: scheduler.binder.refused_count >= 1)
        await run.until(lambda: run.condition(key).get("reason") == "SchedulerError")
        assert "etcd is away" in run.condition(key)["message"]
        assert [each for each in run.server.sent("Pod", method="GET") if each.key == key]
        is_well.set()
        await run.until_bound([key])

    play(scene)


@pytest.mark.parametrize("is_applied", [True, False], ids=["applied", "lost"])
@pytest.mark.parametrize("is_silent", [True, False], ids=["no-answer-in-time", "reset"])
def test_the_answer_is_lost(is_applied: bool, is_silent: bool) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        never = asyncio.Event()
        if is_silent:
            fault = Fault(wait_after=never) if is_applied else Fault(wait=never)
        else:
            fault = Fault(drop="after" if is_applied else "before")
        run.server.find_fault = faults(is_binding, fault)
        scheduler = await run.started(lease=BRIEF)
        (key,) = run.add_pods("a", cpu="4")
        await run.until(lambda: run.events("Scheduled"))
        await run.until_quiet(scheduler)
        first, *others = [request.status for request in run.server.sent(part="binding")]
        assert first == 0
        assert set(others) <= {0, 409 if is_applied else 201}
        assert is_applied or others[-1] == 201
        assert (scheduler.binder.bound_count, scheduler.binder.refused_count) == (1, 0)
        assert len({target(request) for request in run.server.sent(part="binding")}) == 1
        assert await bind_the_rest(run, scheduler) != run.node_of(key)

    play(scene)


@pytest.mark.parametrize("is_applied", [True, False], ids=["applied", "lost"])
def test_no_answer_for_longer_than_a_binding_is_repeated(is_applied: bool) -> None:
    """The pod is read until the server answers: only then it is known where the pod is."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        clock, is_back = ShiftedClock(), asyncio.Event()

        def find(request: ApiRequest) -> Fault | None:
            if is_back.is_set() or request.key != "default/a":
                return None
            if request.is_binding:
                clock.ahead += 5
                return Fault(drop="after" if is_applied else "before")
            return Fault(drop="before")

        run.server.find_fault = find
        run.server.watches.hold("Pod")
        run.add_pods("a", cpu="4")
        scheduler = await run.started(clock=clock)
        await run.until(lambda: len(run.server.sent("Pod", method="GET")) > 3)
        assert scheduler.binder.refused_count == 0
        is_back.set()
        await run.until_bound(["default/a"])
        run.server.watches.release()
        assert await bind_the_rest(run, scheduler) != run.node_of("default/a")
        assert scheduler.binder.refused_count == (0 if is_applied else 1)

    play(scene)


def test_half_of_all_bindings_fail() -> None:
    """Every pod is bound in the end, and no node has more than fits."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", "n3", cpu="10")
        kinds = [Fault(drop="after"), Fault(drop="before"), refused(500), refused(429, retry_after=0), refused(403)]
        count = 0

        def find(request: ApiRequest) -> Fault | None:
            nonlocal count
            count += request.is_binding
            return kinds[count // 2 % len(kinds)] if request.is_binding and count % 2 else None

        run.server.find_fault = find
        await run.started()
        keys = run.add_pods(*(f"p{n}" for n in range(15)))
        for number in range(3):
            keys += run.add_gang(f"g{number}", 5)
        await run.until_bound(keys)
        nodes = [run.node_of(key) for key in keys]
        assert {node: nodes.count(node) for node in nodes} == {"n1": 10, "n2": 10, "n3": 10}

    play(scene)
