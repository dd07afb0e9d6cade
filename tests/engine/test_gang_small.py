"""Clusters of a node or two in which gangs once went wrong; each was found by trying everything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.brute_force import Instance, Job, Machine, Team
from tests.gang_instances import Verdict, instance, judged


def machine(name: str, cpu: int, rack: str | None = None) -> Machine:
    return Machine(name, (cpu * 1000, 65536, 0, 110), rack=rack)


def job(name: str, cpu: int, part: str = "", *, on: str | None = None) -> Job:
    return Job(name, (cpu * 1000, 1024, 0, 1), 10, 0, on, "new", part)


def other(name: str, cpu: int, on: str, **fields: object) -> Job:
    return Job(name, (cpu * 1000, 1024, 0, 1), machine=on, **fields)


SMALL = {
    "a running member pins the rack, and somebody has to go": Instance(
        (machine("n", 2, "r"),),
        (job("a", 1, on="n"), other("low", 1, "n"), job("b", 1)),
        (Team("new", 2, required="rack"),),
    ),
    "a part finds no room in any rack before the other pods were looked at": Instance(
        (machine("n", 4, "r"),),
        (other("low", 2, "n"), job("b", 3, "b"), replace(job("own", 1), tolerates=True)),
        (Team("new", 2, parts=(("b", 1, "rack"),)),),
    ),
    "the gang lacks more than its own pods, and cannot start": Instance(
        (machine("n", 2),),
        (job("a1", 1, "a"), job("a2", 5, "a"), job("own", 1)),
        (Team("new", 3, parts=(("a", 1, None),)),),
    ),
    "a pod of a part makes up the minimum where one of none does not fit": Instance(
        (machine("n", 2),),
        (job("a1", 1, "a"), job("a2", 1, "a"), job("own", 5)),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
    "two small pods of a part rather than a large one": Instance(
        (machine("n", 2),),
        (job("a1", 2, "a"), job("a2", 1, "a"), job("a3", 1, "a")),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
    "beyond the minimums of parts, whichever pod fits": Instance(
        (machine("n", 3), machine("m", 2)),
        (job("a1", 2, "a"), job("a2", 2, "a"), job("b1", 3, "b"), job("b2", 1, "b")),
        (Team("new", 3, parts=(("a", 1, None), ("b", 1, None))),),
    ),
    "nobody goes where the gang fits without": Instance(
        (machine("n", 3),),
        (other("low", 1, "n"), job("a1", 2, "a"), job("a2", 1, "a"), job("a3", 1, "a")),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small(name: str) -> None:
    assert judged(SMALL[name]) == Verdict()


@pytest.mark.parametrize(
    "name",
    [
        "5/391",  # all ten have to go, and nothing less will do
        "5/2560",  # more units than are tried in every combination
    ],
)
def test_drawn(name: str) -> None:
    seed, number = map(int, name.split("/"))
    assert judged(instance(seed, number)) == Verdict()
