"""Small clusters with one gang that waits, drawn from a seed, and the same as Kubernetes objects.

Three sorts in turn: a gang that fits, but not pod by pod onto the first machine with room; a gang that fits only after
evictions; a gang that never fits. Most are made around a solution that fills machines completely.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from tests.support import builders
from tests.support.brute_force.gang_search import (
    Amounts,
    Instance,
    Job,
    Machine,
    Team,
    best_victims,
    fits,
    free,
    welcome,
)
from tests.support.builders import COSCHEDULING_LABEL
from tutti.kube import objects as k
from tutti.kube.gangs import tutti_annotations as additions
from tutti.kube.objects import Object

SORTS = ("packed", "evicting", "never")


def instances(seed: int, count: int) -> Iterator[Instance]:
    """Instances, each sort as often as the others; the same seed gives the same ones."""
    for number in range(count):
        yield instance(seed, number)


def instance(seed: int, number: int) -> Instance:
    """One of the instances of a seed."""
    wanted = SORTS[number % len(SORTS)]
    draw = random.Random(f"{seed}/{number}")
    while True:
        made = _Draw(draw, wanted).instance(f"{seed}/{number}")
        if sort(made) == wanted:
            return made


def sort(made: Instance) -> str:
    """Of which sort an instance is."""
    if fits(made):
        return "easy" if _first_fit(made) else "packed"
    return "never" if best_victims(made) is None else "evicting"


def _first_fit(made: Instance) -> bool:
    """Whether the gang fits when each pod takes the first machine with room."""
    left, team = free(made), made.team
    placed = [job for job in made.running if job.gang == team.name]
    for job in made.waiting:
        for machine in made.machines:
            room = left[machine.name]
            if welcome(machine, job) and all(a <= r for a, r in zip(job.ask, room, strict=True)):
                left[machine.name] = tuple(r - a for r, a in zip(room, job.ask, strict=True))
                placed.append(replace(job, machine=machine.name))
                break
    at = {machine.name: machine for machine in made.machines}
    groups = [(placed, team.required), *(([j for j in placed if j.part == p], key) for p, _, key in team.parts)]
    for jobs, key in groups:
        values = {at[job.machine].value(key) for job in jobs if job.machine} if key is not None else set()
        if len(values) > 1 or None in values:
            return False
    return not team.short(placed)


class _Draw:
    """The drawing of one instance."""

    def __init__(self, draw: random.Random, wanted: str) -> None:
        self.draw, self.wanted = draw, wanted
        self.large = draw.random() < 0.5
        self.machines = self._machines()
        self.left = {machine.name: machine.room for machine in self.machines}
        self.running: list[Job] = []

    def instance(self, name: str) -> Instance:
        draw = self.draw
        teams = [
            self._running_team(f"team-{n}")
            for n in range(draw.choice((0, 0, 1, 2, 3) if not self.large else (1, 2, 3)))
        ]
        budgets = [(f"budget-{n}", draw.choice((0, 0, 1, 2))) for n in range(draw.choice((0, 0, 1, 1, 2)))]
        if self.wanted == "packed" or (self.wanted == "never" and draw.random() < 0.4):
            self._fill(teams, budgets, draw.randrange(0, 7), share=0.5)
            new, jobs = self._gang()
        else:
            whole = dict(self.left)
            new, jobs = self._gang()
            # Others run where the gang could.
            self.left = whole
            for job in jobs:
                if job.machine is not None:
                    self._take(job.machine, job.ask)
            self._fill(teams, budgets, draw.randrange(8 if self.large else 3, 15 if self.large else 11), share=0.9)
        if self.wanted == "never":
            jobs = [self._grown(job) if job.machine is None and draw.random() < 0.3 else job for job in jobs]
        teams = [team for team in teams if any(job.gang == team.name for job in self.running)]
        every = (*self.running, *jobs)
        return Instance(tuple(self.machines), every, (*teams, new), tuple(budgets), name=name)

    # Machines ---------------------------------------------------------------------------------------------------------

    def _machines(self) -> list[Machine]:
        draw = self.draw
        racks = draw.choice((1, 2, 2, 3))
        gpus = draw.random() < 0.5
        made = []
        for number in range(draw.randrange(4 if self.large else 2, 7)):
            rack = number % racks
            room = (
                draw.choice((4, 6, 8, 8, 10)) * 1000,
                draw.choice((8, 16, 16, 32)) * 1024,
                draw.choice((2, 4, 8)) if gpus and draw.random() < 0.8 else 0,
                draw.choice((2, 3, 110, 110, 110, 110)),
            )
            made.append(
                Machine(
                    f"node-{number}", room,
                    rack=f"rack-{rack}" if draw.random() < 0.95 else None,
                    zone=f"zone-{rack // 2}",
                    ssd=draw.random() < 0.6, tainted=draw.random() < 0.15,
                )
            )  # fmt: skip
        return made

    def _piece(self, room: Amounts, *, most: int = 6) -> Amounts | None:
        """Some of what a machine has left."""
        draw = self.draw
        cpu, memory, gpu, pods = room
        if cpu < 1000 or memory < 1024 or not pods:
            return None
        halves = draw.randrange(1, min(cpu // 500, 2 * most) + 1)
        return (
            halves * 500,
            draw.randrange(1, min(memory // 1024, 12) + 1) * 1024,
            draw.randrange(0, min(gpu, 4) + 1) if draw.random() < 0.6 else 0,
            1,
        )

    def _take(self, name: str, ask: Amounts) -> None:
        self.left[name] = tuple(r - a for r, a in zip(self.left[name], ask, strict=True))

    # Running pods -----------------------------------------------------------------------------------------------------

    def _running_team(self, name: str) -> Team:
        draw = self.draw
        parts: tuple[tuple[str, int, str | None], ...] = ()
        if draw.random() < 0.25:
            parts = (("a", draw.randrange(0, 3), None), ("b", draw.randrange(0, 2), None))
        return Team(name, draw.randrange(1, 4), draw.choice(("single", "whole", "whole", "all")), None, parts)

    def _fill(self, teams: Sequence[Team], budgets: Sequence[tuple[str, int]], count: int, *, share: float) -> None:
        """Add running pods."""
        draw = self.draw
        priority = {team.name: draw.choice((0, 0, 5, 5, 10)) for team in teams}
        for number in range(count):
            machine = draw.choice(self.machines)
            ask = self._piece(self.left[machine.name], most=2 if self.large else 4)
            if ask is None or draw.random() > share or len(self.running) == 10:
                continue
            team = draw.choice((*teams, *teams, None))
            level = draw.choice((0, 0, 5, 5, 9, 10, 20))
            if team is not None:
                level = priority[team.name] - draw.choice((0, 0, 0, 1))
            self._take(machine.name, ask)
            part = draw.choice([name for name, _, _ in team.parts]) if team is not None and team.parts else ""
            covered = tuple(name for name, _ in budgets if draw.random() < 0.4)
            self.running.append(
                Job(
                    f"run-{number}", ask, level, draw.randrange(0, 50), machine.name,
                    gang=team.name if team is not None else None, part=part, tolerates=True, budgets=covered,
                )
            )  # fmt: skip

    # The gang that waits ----------------------------------------------------------------------------------------------

    def _gang(self) -> tuple[Team, list[Job]]:
        draw = self.draw
        required = draw.choice((None, None, None, "rack", "zone"))
        names = draw.choice(((), (), (), ("a", "b"), ("a", "b", "c")))
        keys = {name: draw.choice((None, None, "rack")) for name in names}
        area = self._domain(self.machines, required)
        areas = {name: self._domain(area, key) for name, key in keys.items()} | {"": area}
        jobs: list[Job] = []
        wanted, tries = draw.randrange(4 if self.large else 1, 9), 0
        while len(jobs) < wanted and tries < 30:
            tries += 1
            part = draw.choice((*names, *names, "")) if names else ""
            if not areas[part]:
                continue
            machine = draw.choice(areas[part])
            like = draw.choice(jobs).ask if jobs and draw.random() < 0.4 else None
            ask = like or self._piece(self.left[machine.name])
            if ask is None or any(a > r for a, r in zip(ask, self.left[machine.name], strict=True)):
                continue
            if draw.random() < 0.3 and self.left[machine.name][0] - ask[0] < 2000:
                ask = (self.left[machine.name][0], *ask[1:])
            self._take(machine.name, ask)
            here = draw.random() < 0.12
            jobs.append(
                Job(
                    "", ask, 10, 0, machine.name if here else None, "new", part,
                    wants_ssd=machine.ssd and draw.random() < 0.3, tolerates=machine.tainted or draw.random() < 0.3,
                )
            )  # fmt: skip
        jobs = self._named(jobs or [Job("", (1000, 1024, 0, 1), 10, 0, None, "new")])
        return self._team(jobs, names, keys, required), jobs

    def _named(self, jobs: list[Job]) -> list[Job]:
        """Add some pods beyond what was planted, and mix them."""
        draw = self.draw
        room = 8 - len(jobs)
        extra = draw.randrange(0, min(room, 3) + 1) if room > 0 and draw.random() < 0.4 else 0
        decoys = [replace(self._grown(draw.choice(jobs)), machine=None) for _ in range(extra)]
        jobs = jobs + decoys
        if all(job.machine is not None for job in jobs):
            jobs[0] = replace(jobs[0], machine=None)
        draw.shuffle(jobs)
        return [replace(job, name=f"new-{number}") for number, job in enumerate(jobs)]

    def _grown(self, job: Job) -> Job:
        cpu, memory, gpu, pods = job.ask
        return replace(job, ask=(cpu + self.draw.choice((500, 1000, 2000)), memory, gpu, pods))

    def _team(self, jobs: list[Job], names: Sequence[str], keys: dict[str, str | None], required: str | None) -> Team:
        draw = self.draw
        minimum = len(jobs) - draw.choice((0, 0, 0, 1, 2))
        parts = []
        for name in names:
            there = sum(job.part == name for job in jobs)
            parts.append((name, max(there - draw.choice((0, 0, 1)), 0), keys[name]))
        if parts and draw.random() < 0.5:
            minimum = 1
        return Team("new", max(minimum, 1), "whole", required, tuple(parts))

    def _domain(self, machines: Sequence[Machine], key: str | None) -> list[Machine]:
        if key is None:
            return list(machines)
        values = sorted({v for machine in machines if (v := machine.value(key)) is not None})
        chosen = self.draw.choice(values) if values else None
        return [machine for machine in machines if machine.value(key) == chosen and chosen is not None]


# As Kubernetes objects ------------------------------------------------------------------------------------------------


def objects(made: Instance) -> list[Object]:
    """The instance as Kubernetes objects."""
    found: list[Object] = [_node_of(machine) for machine in made.machines]
    found += [_budget(name, allowed) for name, allowed in made.budgets]
    found += [_group(team) for team in made.teams]
    found += [_pod_of(job) for job in made.jobs]
    return found


def _node_of(machine: Machine) -> k.Node:
    labels = {key: value for key in ("rack", "zone") if (value := machine.value(key)) is not None}
    labels |= {"disk": "ssd"} if machine.ssd else {}
    cpu, memory, gpu, pods = machine.room
    taints = [k.Taint(key="dedicated", effect="NoSchedule")] if machine.tainted else None
    room = {"memory": f"{memory}Mi", "pods": str(pods), "gpu": gpu}
    return builders.node(machine.name, f"{cpu}m", **room, labels=labels, taints=taints)


def _budget(name: str, allowed: int) -> k.PodDisruptionBudget:
    made = builders.disruption_budget(name, allowed)
    return msgspec.structs.replace(made, spec=k.BudgetSpec(selector=k.LabelSelector(match_labels={name: "covers"})))


def _group(team: Team) -> Object:
    annotations = {additions.DISRUPTION: team.disruption}
    if team.required is not None:
        annotations[additions.REQUIRED] = team.required
    if team.parts:
        parts = [
            {"name": name, "minMember": least, "topology": {} if key is None else {"required": key}}
            for name, least, key in team.parts
        ]
        annotations[additions.SUB_GROUPS] = msgspec.json.encode(parts).decode()
    return builders.pod_group(team.name, team.minimum, annotations)


def _pod_of(job: Job) -> k.Pod:
    cpu, memory, gpu, _ = job.ask
    labels = dict.fromkeys(job.budgets, "covers")
    if job.gang is not None:
        labels[COSCHEDULING_LABEL] = job.gang
    if job.part:
        labels[additions.SUB_GROUP] = job.part
    return builders.pod(
        job.name, f"{cpu}m", memory=f"{memory}Mi", gpu=gpu, on=job.machine, priority=job.priority, labels=labels,
        started=f"2026-01-01T00:{job.start:02}:00Z" if job.machine else None,
        node_selector={"disk": "ssd"} if job.wants_ssd else None,
        tolerates="dedicated" if job.tolerates else None,
    )  # fmt: skip
