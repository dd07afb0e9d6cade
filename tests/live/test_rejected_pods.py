"""Pods that a kubelet rejects after they were bound; `test_gang_failures` has those with a controller."""

from __future__ import annotations

import pytest

from tests.support.builders import pod
from tests.support.live_runs import LiveRun, play
from tutti.kube.objects import Pod, PodStatus
from tutti.live.executor.rejected_pods import is_rejected

OWNER = ("ReplicaSet", "workers")


@pytest.mark.parametrize("reason", ["OutOfcpu", "OutOfmemory", "NodeAffinity", "UnexpectedAdmissionError"])
def test_a_bare_pod_is_reported(reason: str) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        (key,) = run.add_pods("bare")
        await run.until_bound([key])
        run.fail_pod(key, reason)
        await run.until(lambda: run.events("RejectedByKubelet"))
        ((name, note),) = run.events("RejectedByKubelet")
        assert name == "bare"
        assert note.startswith(f"Failed before it started: the kubelet of node n1 rejected it ({reason})")
        assert "no controller creates it again" in note
        assert scheduler.rejected.count == 1

    play(scene)


def test_the_other_members_of_its_gang_are_told() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        await run.started()
        gang = run.add_gang("g", 3)
        run.add_pods("alone")
        await run.until_bound(gang)
        run.run_pods(gang[1:])
        run.fail_pod(gang[0], "OutOfcpu")
        await run.until(lambda: len(run.events("RejectedByKubelet")) == 3)
        notes = dict(run.events("RejectedByKubelet"))
        assert notes.keys() == {"g-0", "g-1", "g-2"}
        assert notes["g-1"].startswith("default/g-0 of the same gang failed: the kubelet of node")

    play(scene)


def test_others_are_not_reported() -> None:
    """Pods with a controller, pods of other schedulers, pods that ran, and failures from before the start."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        (old,) = run.add_pods("old", on="n1")
        run.fail_pod(old, "OutOfcpu")
        (foreign,) = run.add_pods("foreign", on="n1", schedulerName="default-scheduler")
        scheduler = await run.started()
        (owned,) = run.add_pods("owned", owner=OWNER)
        (ran,) = run.add_pods("ran")
        await run.until_bound([owned, ran])
        run.fail_pod(foreign, "OutOfcpu")
        run.fail_pod(owned, "OutOfcpu")
        run.fail_pod(ran, "DeadlineExceeded")
        await run.until(lambda: not any(map(scheduler.newest.pod, (foreign, owned, ran))))
        await run.until_quiet(scheduler)
        assert scheduler.rejected.count == 0
        assert not run.events("RejectedByKubelet")

    play(scene)


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("OutOfnvidia.com/gpu", None, True),
        ("NewReason", "Pod was rejected: no", True),
        ("Evicted", "The node was low on resource: memory.", False),
        (None, None, False),
    ],
)
def test_which_failures_are_rejections(reason: str | None, message: str | None, expected: bool) -> None:
    failed = Pod(metadata=pod("a").metadata, status=PodStatus(phase="Failed", reason=reason, message=message))
    assert is_rejected(failed) is expected
