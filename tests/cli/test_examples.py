"""The examples of gangs come out as their comments say: who starts, who waits, who has to go."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.support.command_line import Run
from tests.support.paths import EXAMPLES

Tutti = Callable[..., Run]
GANGS = EXAMPLES / "gangs"


class Outcome(NamedTuple):
    """What a plan comes to: names of pods, without the namespace."""

    placed: str = ""
    pending: str = ""
    evicted: str = ""
    moved: str = ""


OUTCOMES = {
    "singles": Outcome(placed="high-0 high-1", evicted="low-1 low-2"),
    "gang-over-gang": Outcome(placed="high-kvnk9 high-m8qjx high-qsgkv", evicted="low-0 low-1 low-2"),
    "too-large": Outcome(pending="high-0 high-1 high-2 high-3"),
    "free-plus-freed": Outcome(placed="high-0 high-1 high-2", evicted="low-0 low-1"),
    "deadlock": Outcome(placed="a-0 a-1 a-2", pending="b-0 b-1 b-2"),
    "rack": Outcome(placed="train-0 train-1 train-2", pending="train-next-0 train-next-1 train-next-2"),
    "native": Outcome(placed="high-0 high-1", evicted="batch-0"),
    "elastic": Outcome(placed="later-0 later-1 later-2 new-0 new-1", pending="later-3", evicted="old-0 old-1"),
    "consolidation": Outcome(pending="pair-0 pair-1"),
    "consolidation --consolidation": Outcome(placed="pair-0 pair-1", moved="web-0"),
}


def outcome(run: Run) -> Outcome:
    plan = run.json

    def pods(part: str, *, moved: bool = False) -> str:
        chosen = [each["pod"] for each in plan[part] if ("to" in each) == moved]
        assert all(pod.startswith("team-a/") for pod in chosen)
        return " ".join(sorted(pod.partition("/")[2] for pod in chosen))

    return Outcome(pods("binds"), pods("unschedulable"), pods("evictions"), pods("evictions", moved=True))


@pytest.mark.parametrize("example", OUTCOMES)
def test_outcome(tutti: Tutti, example: str) -> None:
    name, *flags = example.split()
    assert outcome(tutti("schedule", "-f", str(GANGS / f"{name}.yaml"), "-o", "json", *flags)) == OUTCOMES[example]


def test_every_example_has_an_outcome_a_comment_and_a_place_in_the_readme() -> None:
    files = sorted(GANGS.glob("*.yaml"))
    assert {path.stem for path in files} == {example.split()[0] for example in OUTCOMES}
    shown = (GANGS / "README.md").read_text("utf-8")
    for path in files:
        assert f"$ tutti schedule -f examples/gangs/{path.name}" in shown
        assert re.match(r"# [A-Z].*\n#\n# [A-Z]", path.read_text("utf-8"))


def test_pod_by_pod_the_deadlock_is_one(tutti: Tutti) -> None:
    text = re.sub(r", labels: {scheduling[^}]*}", "", (GANGS / "deadlock.yaml").read_text("utf-8"))
    assert outcome(tutti("schedule", "-f", "-", "-o", "json", stdin=text)) == Outcome("a-0 a-1 b-0 b-1", "a-2 b-2")


def test_the_rack_holds_the_whole_gang(tutti: Tutti) -> None:
    plan = tutti("schedule", "-f", str(GANGS / "rack.yaml"), "-o", "json").json
    assert {bind["node"] for bind in plan["binds"]} == {"n2-a", "n2-b", "n2-c"}
    assert plan["gangs"][0]["domain"] == {"rack": "rack-2"}
