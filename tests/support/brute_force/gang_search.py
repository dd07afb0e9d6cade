"""What a gang may do in a small cluster, by trying everything: plain data, plain code, nothing of the engine.

Contract: `fits` says whether at least the needed pods of the waiting gang can be placed, `best_victims` which pods have
to go for that at the least loss. The rules are those of docs/gangs.md, and of `Loss`. Complete, therefore only for some
nodes and some pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

Amounts = tuple[int, ...]
"""Millicores, MiB, GPUs, pods."""
Loss = tuple[int, int, int, int, int, int, int]
"""Budget-breaking evictions, highest priority of what goes together, gangs broken, pods, sum of priorities, and the
first start among the victims of the highest priority, negative: less is better."""


@dataclass(frozen=True)
class Machine:
    """A node."""

    name: str
    room: Amounts
    rack: str | None = None
    zone: str | None = None
    ssd: bool = False
    tainted: bool = False

    def value(self, key: str) -> str | None:
        """The value of a label."""
        return {"rack": self.rack, "zone": self.zone}[key]


@dataclass(frozen=True)
class Job:
    """A pod; one without a machine waits."""

    name: str
    ask: Amounts
    priority: int = 0
    start: int = 0
    machine: str | None = None
    gang: str | None = None
    part: str = ""
    wants_ssd: bool = False
    tolerates: bool = False
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Team:
    """A gang: its minimum, how it may be evicted, the label that its pods share, and its parts."""

    name: str
    minimum: int
    disruption: str = "whole"
    required: str | None = None
    parts: tuple[tuple[str, int, str | None], ...] = ()
    """Name, minimum and label that is shared."""

    def short(self, jobs: Sequence[Job]) -> bool:
        """Whether fewer than a minimum run."""
        return len(jobs) < self.minimum or any(sum(j.part == p for j in jobs) < least for p, least, _ in self.parts)


@dataclass(frozen=True)
class Instance:
    """A cluster with one gang that waits: the team `gang`."""

    machines: tuple[Machine, ...]
    jobs: tuple[Job, ...]
    teams: tuple[Team, ...]
    budgets: tuple[tuple[str, int], ...] = ()
    gang: str = "new"
    name: str = field(default="", compare=False)

    @property
    def team(self) -> Team:
        """The gang that waits."""
        return next(team for team in self.teams if team.name == self.gang)

    @property
    def waiting(self) -> list[Job]:
        """The pods that wait."""
        return [job for job in self.jobs if job.machine is None]

    @property
    def running(self) -> list[Job]:
        """The pods that run."""
        return [job for job in self.jobs if job.machine is not None]

    @property
    def priority(self) -> int:
        """The gang's priority: the highest of its pods'."""
        return max(job.priority for job in self.jobs if job.gang == self.gang)


# Room -----------------------------------------------------------------------------------------------------------------


def free(instance: Instance, without: Iterable[Job] = ()) -> dict[str, Amounts]:
    """What is left on each machine when some pods have gone."""
    left = {machine.name: list(machine.room) for machine in instance.machines}
    gone = {job.name for job in without}
    for job in instance.running:
        if job.name not in gone and job.machine is not None:
            left[job.machine] = [a - b for a, b in zip(left[job.machine], job.ask, strict=True)]
    return {name: tuple(amounts) for name, amounts in left.items()}


def welcome(machine: Machine, job: Job) -> bool:
    """Whether a machine takes a pod, were there room."""
    return (not machine.tainted or job.tolerates) and (machine.ssd or not job.wants_ssd)


def fits(instance: Instance, without: Iterable[Job] = ()) -> bool:
    """Whether the gang can reach its minimums when some pods have gone."""
    team, left = instance.team, free(instance, without)
    mine = [job for job in instance.running if job.gang == team.name]
    lacks = {part: max(least - sum(job.part == part for job in mine), 0) for part, least, _ in team.parts}
    total = max(team.minimum - len(mine), 0)
    tried: set[tuple[tuple[str, ...], ...]] = set()
    for where in _areas(instance, mine):
        allowed = tuple(
            tuple(m.name for m in where[job.part] if welcome(m, job) and _within(job.ask, left[m.name]))
            for job in instance.waiting
        )
        if allowed not in tried and _Packing(instance.waiting, allowed, left, lacks, total).run():
            return True
        tried.add(allowed)
    return False


def _areas(instance: Instance, mine: Sequence[Job]) -> Iterator[dict[str, list[Machine]]]:
    """Every choice of domains: on which machines the pods of each part may be."""
    team = instance.team
    for outer in _domains(instance.machines, team.required, instance, mine):
        inner = [
            list(_domains(outer, key, instance, [job for job in mine if job.part == part]))
            for part, _, key in team.parts
        ]
        for chosen in product(*inner):
            yield {"": outer} | {part: area for (part, _, _), area in zip(team.parts, chosen, strict=True)}


def _domains(
    machines: Sequence[Machine], key: str | None, instance: Instance, mine: Sequence[Job]
) -> Iterator[list[Machine]]:
    if key is None:
        yield list(machines)
        return
    at = {machine.name: machine.value(key) for machine in instance.machines}
    taken = {at[job.machine] for job in mine if job.machine is not None}
    for value in sorted({v for machine in machines if (v := machine.value(key)) is not None}):
        if not taken - {value}:
            yield [machine for machine in machines if machine.value(key) == value]
    if not taken:
        yield []  # no pod of this part is placed at all


def _within(ask: Amounts, room: Amounts) -> bool:
    return all(a <= r for a, r in zip(ask, room, strict=True))


class _Packing:
    """Pods onto machines, every way."""

    def __init__(
        self,
        jobs: Sequence[Job],
        allowed: Sequence[tuple[str, ...]],
        left: dict[str, Amounts],
        lacks: dict[str, int],
        total: int,
    ) -> None:
        self._names = sorted(left)
        self._left = [left[name] for name in self._names]
        places = {name: place for place, name in enumerate(self._names)}
        kinds = [(job.ask, job.part, tuple(places[n] for n in where)) for job, where in zip(jobs, allowed, strict=True)]
        self._kinds = sorted((kind for kind in kinds if kind[2]), reverse=True)
        self._dead: set[object] = set()
        self._lacks, self._total = lacks, total

    def run(self) -> bool:
        """Whether there is a way."""
        return self._job(0, 0, tuple(sorted(self._lacks.items())), self._total, tuple(self._left))

    def _job(
        self, number: int, first: int, lacks: tuple[tuple[str, int], ...], total: int, left: tuple[Amounts, ...]
    ) -> bool:
        if total <= 0 and not any(lack for _, lack in lacks):
            return True
        rest = self._kinds[number:]
        if len(rest) < total or any(sum(part == p for _, p, _ in rest) < lack for part, lack in lacks):
            return False
        state = (number, first, lacks, total, left)
        if state in self._dead:
            return False
        ask, part, where = self._kinds[number]
        following = self._kinds[number + 1] == self._kinds[number] if number + 1 < len(self._kinds) else False
        fewer = tuple((p, max(lack - 1, 0) if p == part else lack) for p, lack in lacks)
        for place in where:
            # Pods that are alike go in the order of machines.
            if place < first or not _within(ask, left[place]):
                continue
            now = tuple(a - b for a, b in zip(left[place], ask, strict=True))
            after = (*left[:place], now, *left[place + 1 :])
            if self._job(number + 1, place if following else 0, fewer, total - 1, after):
                return True
        if self._job(number + 1, first if following else 0, lacks, total, left):
            return True
        self._dead.add(state)
        return False


# Victims --------------------------------------------------------------------------------------------------------------


def crew(instance: Instance, name: str) -> list[Job]:
    """The running pods of a gang."""
    return [job for job in instance.running if job.gang == name]


def unit_priority(instance: Instance, job: Job) -> int:
    """The priority that counts for a running pod: its gang's, or its own."""
    return job.priority if job.gang is None else max(each.priority for each in crew(instance, job.gang))


def may_go(instance: Instance, victims: Sequence[Job]) -> bool:
    """Whether just these pods may be evicted: of strictly lower priority, and no gang half of which has to stay."""
    if any(unit_priority(instance, job) >= instance.priority for job in victims):
        return False
    gone = {job.name for job in victims}
    for team in instance.teams:
        members = crew(instance, team.name)
        left = [job for job in members if job.name not in gone]
        if len(left) in (0, len(members)) or team.disruption == "single":
            continue
        if team.disruption == "all" or team.short(left):
            return False
    return True


def loss(instance: Instance, victims: Sequence[Job]) -> Loss:
    """How much a set of victims matters."""
    order = sorted(victims, key=lambda job: (-job.priority, job.start, job.name))
    allowed = dict(instance.budgets)
    violations = 0
    for job in order:
        for budget in sorted(job.budgets):
            allowed[budget] -= 1
            if allowed[budget] < 0:
                violations += 1
                break
    gone = {job.name for job in victims}
    broken = disruptions = sum(job.gang is None for job in victims)
    for team in instance.teams:
        members = crew(instance, team.name)
        left = [job for job in members if job.name not in gone]
        is_broken = len(left) < len(members) and team.short(left)
        broken += is_broken
        disruptions += len(members) - len(left) if team.disruption == "single" else is_broken
    highest = max(unit_priority(instance, job) for job in victims)
    top = order[0].priority
    first = min(job.start for job in victims if job.priority == top)
    return violations, highest, disruptions, len(victims), broken, sum(job.priority for job in victims), -first


def best_victims(instance: Instance) -> tuple[Loss, tuple[Job, ...]] | None:
    """The least loss that lets the gang fit, and victims that have it; None when no set does."""
    lower = [job for job in instance.running if unit_priority(instance, job) < instance.priority]
    if not fits(instance, lower):
        return None
    sets = [
        (loss(instance, chosen), chosen)
        for size in range(1, len(lower) + 1)
        for chosen in combinations(lower, size)
        if may_go(instance, chosen)
    ]
    failed: list[frozenset[str]] = []
    for lost, chosen in sorted(sets, key=lambda pair: pair[0]):
        names = frozenset(job.name for job in chosen)
        if any(names <= other for other in failed):
            continue  # more would have to go
        if fits(instance, chosen):
            return lost, chosen
        failed.append(names)
    return None
