"""The binder alone: order, gangs, the window, and what it looks at before each binding."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.builders import members, node, pod
from tests.support.live_runs import PATIENCE
from tests.support.memory_api_server import MemoryApiServer
from tutti.client.api_client import ApiClient
from tutti.cluster.edits import Put
from tutti.engine.session.plan import Bound
from tutti.kube import objects as k
from tutti.kube.reading.decode import decode_object
from tutti.kube.reading.sources import Source
from tutti.live.executor.binder import PodBinder
from tutti.live.executor.request_window import RequestWindow
from tutti.live.executor.volume_binder import VolumeBinder
from tutti.live.inbox import Inbox, RefusedBinding
from tutti.live.newest_objects import NewestObjects


class BinderRun:
    """A binder, a server with the pods of a test, and the newest reports, which the test writes."""

    def __init__(self, server: MemoryApiServer, client: ApiClient, width: int) -> None:
        self.server, self.inbox, self.newest = server, Inbox(), NewestObjects()
        self.may_write, self.write_timeout = True, 5.0
        self.ahead = 0.0
        """Seconds by which the binder's clock is ahead."""
        self.bound: list[str] = []
        self.told: list[tuple[str, str]] = []
        self.window = RequestWindow(first=width, most=width, monotonic=time.monotonic)
        volumes = VolumeBinder(
            client,
            self.newest,
            may_write=lambda: self.may_write,
            monotonic=time.monotonic,
            draw=random.Random(1),
        )
        self.binder = PodBinder(
            client,
            self.inbox,
            self.newest,
            permission=self,
            window=self.window,
            volumes=volumes,
            settle=lambda pod: None,
            on_bound=lambda bound: self.bound.append(bound.pod),
            on_refused=lambda bound, problem: self.told.append((bound.pod, problem)),
            monotonic=lambda: time.monotonic() + self.ahead,
            draw=random.Random(1),
        )
        self.newest.observe([Put(node("n1"))])

    def add(self, *pods: k.Pod) -> list[Bound]:
        """Store pods, report them, and return their bindings to node n1."""
        binds = []
        for each in pods:
            stored = self.server.objects.create(each)
            read = decode_object(msgspec.json.encode(stored), "Pod", source=Source("pods", b""))
            self.newest.observe([Put(read)])
            gang = (each.metadata.annotations or {}).get("pod-group")
            uid = stored["metadata"]["uid"]
            binds.append(Bound(each.key, "n1", uid=uid, gang=f"default/{gang}" if gang else None))
        return binds

    def refusals(self) -> list[tuple[str, str]]:
        """Return the pods whose bindings were taken back, and why."""
        return [(each.pod, each.message) for each in self.inbox.take() if isinstance(each, RefusedBinding)]

    def avoiding(self) -> dict[str, bool]:
        """Return the pods whose bindings were taken back, and whether they avoid the node."""
        return {each.pod: each.avoids_node for each in self.inbox.take() if isinstance(each, RefusedBinding)}

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.002)

    async def until_idle(self) -> None:
        await self.until(lambda: not self.binder.waiting)


def play(scene: Callable[[BinderRun], Awaitable[None]], width: int = 4) -> None:
    async def run() -> None:
        async with MemoryApiServer() as server:
            client = ApiClient(
                server.access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=random.Random(1)
            )
            binder_run = BinderRun(server, client, width)
            try:
                await scene(binder_run)
            finally:
                await binder_run.binder.close()
                await client.close()

    asyncio.run(run())


def test_bindings_start_in_order_and_gangs_stay_together() -> None:
    async def scene(run: BinderRun) -> None:
        first, *gang = run.add(pod("a"), *members("g", 3))
        last = run.add(pod("b"))
        run.binder.submit([first, gang[0], *last, gang[1], gang[2]])
        await run.until_idle()
        names = ["default/a", *(f"default/g-{n}" for n in range(3)), "default/b"]
        assert [request.key for request in run.server.sent(part="binding")] == names
        assert run.bound == names
        assert not run.refusals()

    play(scene, width=1)


def test_at_most_as_many_as_the_window_are_under_way() -> None:
    async def scene(run: BinderRun) -> None:
        hold = asyncio.Event()
        run.server.find_fault = lambda each: Fault(wait=hold)
        run.binder.submit(run.add(*(pod(f"p{n}") for n in range(20))))
        await run.until(lambda: len(run.server.requests) == 4)
        assert (len(run.binder.in_flight), run.binder.waiting) == (4, 20)
        hold.set()
        await run.until_idle()
        assert len(run.bound) == 20

    play(scene, width=4)


def test_a_window_that_shrinks_leaves_no_binding_behind() -> None:
    """All bindings that are under way end at the same moment, when only one may be under way."""

    async def scene(run: BinderRun) -> None:
        hold = asyncio.Event()
        run.server.find_fault = lambda each: Fault(wait=hold)
        run.binder.submit(run.add(*(pod(f"p{n}") for n in range(30))))
        await run.until(lambda: len(run.server.requests) == 8)
        run.window.width = 1
        hold.set()
        await run.until_idle()
        assert len(run.bound) == 30

    play(scene, width=8)


def test_a_binding_that_waits_for_another_attempt_makes_room_for_others() -> None:
    async def scene(run: BinderRun) -> None:
        busy = refused(429, retry_after=1)
        run.server.find_fault = faults(lambda each: each.key == "default/p0", busy)
        run.binder.submit(run.add(*(pod(f"p{n}") for n in range(20))))
        await run.until_idle()
        assert len(run.bound) == 20
        assert run.bound[-1] == "default/p0"

    play(scene, width=1)


def test_a_gang_begins_only_if_all_its_pods_can_be_bound() -> None:
    async def scene(run: BinderRun) -> None:
        gang = run.add(*members("g", 3))
        run.newest.observe([Put(pod("g-2", uid=gang[2].uid, deleted="2026-01-01T00:00:00Z"))])
        run.binder.submit(gang)
        await run.until_idle()
        assert not run.server.requests
        problem = "pod default/g-2 of the same gang: the pod is being deleted"
        assert run.refusals() == [(bound.pod, problem) for bound in gang]
        assert not run.told

    play(scene)


def test_every_binding_is_checked_once_more_before_it_is_sent() -> None:
    async def scene(run: BinderRun) -> None:
        def cordon(request: ApiRequest) -> Fault | None:
            run.newest.observe([Put(node("n1", unschedulable=True))])
            return None

        run.server.find_fault = cordon
        run.binder.submit(run.add(pod("a"), pod("b")))
        await run.until_idle()
        assert run.bound == ["default/a"]
        assert run.refusals() == [("default/b", "node n1 is cordoned")]

    play(scene, width=1)


def test_nothing_is_sent_by_a_process_that_does_not_lead() -> None:
    async def scene(run: BinderRun) -> None:
        run.may_write = False
        run.binder.submit(run.add(pod("a"), *members("g", 2)))
        await run.until_idle()
        assert not run.server.requests
        assert len(run.refusals()) == 3

    play(scene)


def test_a_lease_that_is_lost_between_two_attempts() -> None:
    """The binding is not repeated; the pod is read to see whether the first attempt was carried out."""

    async def scene(run: BinderRun) -> None:
        def lose(request: ApiRequest) -> Fault | None:
            run.may_write = False
            return Fault(drop="before") if request.is_binding else None

        run.server.find_fault = lose
        run.binder.submit(run.add(pod("a")))
        await run.until_idle()
        assert [request.method for request in run.server.requests] == ["POST", "GET"]
        assert run.refusals() == [("default/a", "this process does not lead any more")]

    play(scene)


def test_a_refusal_is_told_with_the_servers_words() -> None:
    async def scene(run: BinderRun) -> None:
        run.server.find_fault = lambda each: refused(403, "Forbidden", "no rights")
        run.binder.submit(run.add(pod("a")))
        await run.until_idle()
        ((key, problem),) = run.told
        assert key == "default/a"
        assert problem.endswith("no rights")
        assert run.refusals() == [(key, problem)]

    play(scene)


def test_a_node_is_avoided_only_after_an_answer_about_the_binding() -> None:
    async def scene(run: BinderRun) -> None:
        answers = {
            "default/policy": refused(403, "Forbidden", 'pods "policy" is forbidden: denied by policy'),
            "default/invalid": refused(422, "Invalid", "no"),
            "default/right": refused(403, "Forbidden", 'forbidden: User "x" cannot create resource "pods/binding"'),
            "default/busy": refused(503, message="etcd is away"),
        }

        def find(request: ApiRequest) -> Fault | None:
            if not request.is_binding:
                return None
            run.ahead += 5
            return answers[request.key]

        run.server.find_fault = find
        run.binder.submit(run.add(*(pod(key.partition("/")[2]) for key in answers)))
        await run.until_idle()
        assert run.avoiding() == {key: key in ("default/policy", "default/invalid") for key in answers}

    play(scene, width=1)


def test_nobody_avoids_a_node_for_what_the_next_session_sees_itself() -> None:
    """But the cluster in memory does not know that a node is under deletion."""

    async def scene(run: BinderRun) -> None:
        run.newest.observe([Put(node("n2"))])
        first, second = run.add(*members("g", 2))
        gang = [first, replace(second, node="n2")]
        run.newest.observe([Put(node("n2", unschedulable=True))])
        run.binder.submit(gang)
        await run.until_idle()
        assert run.avoiding() == {"default/g-0": False, "default/g-1": False}
        leaving = node("n2")
        stamp = "2026-01-01T00:00:00Z"
        run.newest.observe([Put(replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp=stamp)))])
        run.binder.submit(gang)
        await run.until_idle()
        assert run.avoiding() == {"default/g-0": False, "default/g-1": True}
        run.may_write = False
        run.binder.submit([first])
        await run.until_idle()
        assert run.avoiding() == {"default/g-0": False}

    play(scene)


def test_finish_gives_up_what_has_not_begun() -> None:
    async def scene(run: BinderRun) -> None:
        hold = asyncio.Event()
        run.server.find_fault = lambda each: Fault(wait=hold)
        gang = run.add(*members("g", 3))
        run.binder.submit([*gang, *run.add(pod("a")), *run.add(*members("h", 2))])
        await run.until(lambda: len(run.server.requests) == 1)
        finish = asyncio.create_task(run.binder.finish())
        await asyncio.sleep(0)
        assert not finish.done()
        hold.set()
        await asyncio.wait_for(finish, PATIENCE)
        assert run.bound == [bound.pod for bound in gang]

    play(scene, width=1)
