"""Tutti's plans for small clusters with a gang, held against the complete search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.support.brute_force.gang_instances import objects
from tests.support.brute_force.gang_search import Instance, Job, best_victims, crew, fits, free, loss, may_go, welcome
from tutti.cluster.cluster import Cluster
from tutti.engine.session.plan import Plan
from tutti.engine.session.schedule import schedule


class Verdict(NamedTuple):
    """Where a plan differs from the complete search; both texts are empty for a correct plan."""

    wrong: str = ""
    """It starts a gang that cannot start, does not start one that can, or breaks a rule."""
    worse: str = ""
    """Victims that are a greater loss than others which would do."""


def verdict_of(made: Instance) -> Verdict:
    """Compare Tutti's plan with the complete search."""
    try:
        plan = planned(made)
    except Exception as error:  # an instance that Tutti cannot plan is listed as well
        return Verdict(wrong=f"{type(error).__name__}: {error}")
    steps = list(_steps(made, plan))
    state, extra = made, 0
    for victims, binds in steps:
        verdict = _judged_step(state, victims, binds)
        if verdict != Verdict():
            what = f"surplus {extra}: " if extra else ""
            return Verdict(what + verdict.wrong if verdict.wrong else "", what + verdict.worse if verdict.worse else "")
        state, extra = _after(state, victims, binds), extra + 1
        if not state.waiting:
            return Verdict()
    if not state.team.short(crew(state, state.gang)):
        # Every remaining pod must not fit alone.
        verdict = next(
            (t for job in state.waiting if (t := _judged_step(_only(state, job), (), {})) != Verdict()), None
        )
        return Verdict(wrong=f"left over: {verdict.wrong}") if verdict is not None else Verdict()
    return _judged_step(state, (), {}) if not steps else Verdict(wrong="the gang runs in part")


def _steps(made: Instance, plan: Plan) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """What was evicted and bound together: first what the minimums need, then pod by pod."""
    victims: list[str] = []
    binds: dict[str, str] = {}
    running = crew(made, made.gang)
    job_of = {job.name: job for job in made.jobs}
    for bound in plan.binds:
        victims += [_name(pod) for pod in bound.evicts]
        binds[_name(bound.pod)] = bound.node
        placed = [*running, *(job_of[name] for name in binds)]
        if not made.team.short(placed):
            yield tuple(victims), binds
            running, victims, binds = placed, [], {}
    if binds or victims:
        yield tuple(victims), binds


def _name(key: str) -> str:
    return key.partition("/")[2]


def _only(made: Instance, job: Job) -> Instance:
    """The instance in which the gang lacks just one more pod, which is this one."""
    members = crew(made, made.gang)
    team = replace(made.team, minimum=len(members) + 1)
    others = tuple(each for each in made.teams if each.name != made.gang)
    return replace(made, jobs=(*made.running, job), teams=(*others, team))


def _after(made: Instance, victims: Sequence[str], binds: dict[str, str]) -> Instance:
    """The instance when victims have gone and pods run."""
    jobs = [
        replace(job, machine=binds[job.name]) if job.name in binds else job
        for job in made.jobs
        if job.name not in victims
    ]
    gone = [job for job in made.jobs if job.name in victims]
    spent = Counter(budget for job in gone for budget in job.budgets)
    budgets = tuple((name, max(allowed - spent[name], 0)) for name, allowed in made.budgets)
    return replace(made, jobs=tuple(jobs), budgets=budgets)


def _judged_step(made: Instance, victims: Sequence[str], binds: dict[str, str]) -> Verdict:
    """Judge one step: the gang gets what it lacks, or one pod more."""
    instance = made
    if binds and not made.team.short(crew(made, made.gang)):
        (name,) = binds
        instance = _only(made, next(job for job in made.waiting if job.name == name))
    chosen = [job for job in made.running if job.name in victims]
    wrong = _broken_rule(instance, chosen, binds) if binds else ""
    if wrong:
        return Verdict(wrong=wrong)
    if fits(instance):
        if not binds:
            return Verdict(wrong="it fits, but does not start")
        return Verdict(wrong=f"it fits, but evicts {' '.join(victims)}") if victims else Verdict()
    best = best_victims(instance)
    if best is None:
        return Verdict(wrong="it starts, but cannot") if binds else Verdict()
    names = " ".join(job.name for job in best[1])
    if not binds:
        return Verdict(wrong=f"it fits without {names} {best[0]}, but does not start")
    lost = loss(instance, chosen) if chosen else None
    if lost == best[0]:
        return Verdict()
    return Verdict(worse=f"it evicts {' '.join(victims)} {lost}, but {names} {best[0]} would do")


def _broken_rule(instance: Instance, chosen: Sequence[Job], binds: dict[str, str]) -> str:
    """Say which rule a step breaks."""
    if chosen and not may_go(instance, chosen):
        return f"{' '.join(job.name for job in chosen)} may not be evicted"
    after = _after(instance, [job.name for job in chosen], binds)
    for name, room in free(after).items():
        if min(room) < 0:
            return f"{name} is filled beyond what it offers"
    at = {machine.name: machine for machine in instance.machines}
    for job in after.running:
        if job.name in binds and not welcome(at[binds[job.name]], job):
            return f"{binds[job.name]} does not take {job.name}"
    members, team = crew(after, after.gang), after.team
    for part, key in (("", team.required), *((name, key) for name, _, key in team.parts)):
        if key is None:
            continue
        values = {at[job.machine or ""].value(key) for job in members if not part or job.part == part}
        before = {
            at[job.machine or ""].value(key) for job in crew(instance, instance.gang) if not part or job.part == part
        }
        if values != before and (len(values) > 1 or None in values):
            return f"{part or 'the gang'} runs in {len(values)} {key}s"
    return "fewer than the minimum start" if team.short(members) else ""


def planned(made: Instance) -> Plan:
    """Tutti's plan."""
    return schedule(Cluster(objects(made)))
