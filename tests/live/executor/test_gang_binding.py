"""All bindings of a gang begin, or none."""

from __future__ import annotations

from tutti.engine.session.plan import Bound
from tutti.live.executor.gang_binding import GangBinding

BINDS = [Bound(f"default/g-{n}", "n1", gang="default/g") for n in range(3)]


def test_one_problem_keeps_all_back() -> None:
    asked: list[str] = []

    def problem(bound: Bound) -> str | None:
        asked.append(bound.pod)
        return "the pod is gone" if bound.pod == "default/g-1" else None

    gang = GangBinding("default/g", BINDS, problem)
    assert [gang.begin() for _ in BINDS] == [False] * 3
    assert gang.problem == "pod default/g-1 of the same gang: the pod is gone"
    assert not gang.has_begun
    assert asked == ["default/g-0", "default/g-1"]


def test_a_gang_that_has_begun_goes_on() -> None:
    problems: list[str] = []
    gang = GangBinding("default/g", BINDS, lambda bound: problems[0] if problems else None)
    assert gang.begin()
    problems.append("node n1 is gone")
    assert gang.begin()
    assert gang.has_begun
    assert gang.problem is None


def test_a_gang_that_did_not_begin_never_does() -> None:
    problems = ["node n1 is cordoned"]
    gang = GangBinding("default/g", BINDS, lambda bound: problems[0] if problems else None)
    assert not gang.begin()
    problems.clear()
    assert not gang.begin()
