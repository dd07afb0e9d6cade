"""Explanations of gangs: how one stands, what would become of it now, what stops it, and what would cure that.

Contract: a what-if; the cluster is as before afterwards. The gang is judged when its turn comes: what waits and comes
before it, as `before` says, has had its turn, and what comes after it has not. The code that schedules is asked, so
what is said here is what scheduling would do. A cure is given only if, with its edits made, the gang starts when all
that comes before it is scheduled anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.explain.cures import Tell, find_cures
from tutti.engine.gangs.gang_state import GangState, Need
from tutti.engine.placement.engine import Engine
from tutti.engine.reasons.domain_fits import DomainFit, domain_fits
from tutti.engine.reasons.gang_shortage import gang_shortage
from tutti.engine.session.plan import GangPlan, Plan, Turn
from tutti.engine.session.queue_order import not_considered
from tutti.engine.session.schedule import schedule
from tutti.exceptions import NotFoundError
from tutti.kube.gangs.gang import GangPart, GangTopology


class _Record(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pass


class PodCounts(_Record, frozen=True):
    """How many pods of a gang there are of each sort."""

    running: int = 0
    waiting: int = 0
    gated: int = 0
    terminating: int = 0
    elsewhere: int = 0
    """Pending, and another scheduler's to place."""


class GangPartStatus(_Record, frozen=True):
    """What a part of a gang asks for, and what it has; its parts' pods are not counted here."""

    name: str
    minimum: int
    running: int = 0
    waiting: int = 0
    topology: GangTopology = GangTopology()
    parts: tuple[GangPartStatus, ...] = ()
    parts_needed: int | None = None


class EarlierTurns(_Record, frozen=True):
    """What waits and has its turn earlier."""

    gangs: int = 0
    pods: int = 0
    """Pods on their own."""


class GangOutcome(_Record, frozen=True):
    """What would become of a gang at its turn."""

    state: str
    """runs, starts, leaving (it starts when others have left), waits, or problem."""
    message: str = ""
    """Why it waits, or what it has above its minimum, in one sentence."""
    best: int = 0
    """How many of the pods that it still needs would fit, where most do."""
    wanted: int = 0
    where: dict[str, str] = {}
    """Labels and values of the area in which these are."""
    nodes: dict[str, str] = {}
    """Where the pods go, by pod."""
    domain: dict[str, str] = {}
    """The labels that its pods share then, of those that it is bound to or prefers."""
    evicts: tuple[str, ...] = ()
    budgets_broken: int = 0
    reasons: dict[str, int] = {}
    """How many nodes refuse the first pod that is left over with each message."""


class GangExplanation(_Record, frozen=True):
    """Everything about one gang."""

    name: str
    namespace: str
    dialect: str
    priority: int
    minimum: int
    outcome: GangOutcome
    maximum: int | None = None
    topology: GangTopology = GangTopology()
    parts: tuple[GangPartStatus, ...] = ()
    parts_needed: int | None = None
    disruption: str = ""
    pods: PodCounts = PodCounts()
    problem: str | None = None
    """Why it cannot be scheduled, whatever the cluster."""
    before: EarlierTurns = EarlierTurns()
    domain_key: str | None = None
    """The label whose values are the domains."""
    domain_count: int = 0
    domains: tuple[DomainFit, ...] = ()
    """The domains in which most of it fits, if it is bound to a label and waits."""
    cures: tuple[Cure, ...] = ()


def explain_gang(engine: Engine, key: str, tell: Tell = lambda _: None) -> GangExplanation:
    """Explain a gang by its key; `tell` hears what is being looked at."""
    trials = CureTrials(engine, key)
    if not trials.gangs.rows(key):
        raise NotFoundError(f"no pod names gang {key!r}")
    tell("what comes before it")
    earlier = trials.earlier()
    before = _before(trials, earlier)
    with trials.after_turns(earlier):
        told = _explained(trials, tell)
    cures = tuple(cure for each in told.cures if (cure := trials.among(each, earlier)) is not None)
    return replace(told, cures=cures, before=before)


def _explained(trials: CureTrials, tell: Tell) -> GangExplanation:
    """Explain a gang as the cluster is now."""
    engine, key = trials.engine, trials.key
    rows = trials.gangs.rows(key)
    standing = trials.standing()
    gang, need = standing.gang, standing.need()
    tell("its place")
    outcome = _outcome(trials, standing)
    waits = outcome.state == "waits"
    label, count, domains = domain_fits(trials.placer, need) if waits and outcome.wanted else (None, 0, [])
    cures = find_cures(engine, key, tell) if outcome.state in ("waits", "problem") else ()
    turn = trials.turn()
    priority = int(engine.cluster.pods.priority[rows].max()) if gang.priority is None else gang.priority
    namespace, _, name = key.partition("/")
    return GangExplanation(
        name=name,
        namespace=namespace,
        dialect=gang.dialect,
        priority=turn.priority if turn is not None else priority,
        minimum=gang.minimum,
        maximum=gang.maximum,
        topology=gang.topology,
        parts=_parts(standing, gang.parts),
        parts_needed=gang.parts_needed,
        disruption=gang.disruption.value,
        pods=_counts(trials, rows),
        problem=gang.problem,
        outcome=outcome,
        domain_key=label,
        domain_count=count,
        domains=tuple(domains),
        cures=cures,
    )


def _parts(standing: GangState, parts: Sequence[GangPart]) -> tuple[GangPartStatus, ...]:
    part_of = standing.part_of
    return tuple(
        GangPartStatus(
            name=part.name,
            minimum=part.minimum,
            running=sum(part_of[row] == part.name for row in standing.running),
            waiting=sum(part_of[row] == part.name for row in standing.waiting),
            topology=part.topology,
            parts=_parts(standing, part.parts),
            parts_needed=part.parts_needed,
        )
        for part in parts
    )


def _counts(trials: CureTrials, rows: Sequence[int]) -> PodCounts:
    pods = trials.cluster.pods
    found = dict.fromkeys(PodCounts.__struct_fields__, 0)
    causes = {"gated": "gated", "terminating": "terminating", "other scheduler": "elsewhere"}
    for row in rows:
        pod = pods.objects[row]
        if pod is None or pods.terminating[row]:
            found["terminating"] += pod is not None
        elif pods.node_names[row] is not None:
            found["running"] += 1
        else:
            left_out = not_considered(pod, trials.engine.profile)
            found["waiting" if left_out is None else causes[left_out.cause]] += 1
    return PodCounts(**found)


def _before(trials: CureTrials, earlier: Sequence[Turn]) -> EarlierTurns:
    """Count what has its turn before the gang."""
    gangs = pods = 0
    for turn in earlier:
        if turn.surplus:
            continue
        if turn.gang is None:
            pods += 1
            continue
        rows = [trials.cluster.pod_row(pod) for pod in turn.pods]
        standing = trials.gangs.standing(turn.gang, rows)
        gangs += standing.gang.problem is None and standing.need().least > 0
    return EarlierTurns(gangs=gangs, pods=pods)


# The outcome ----------------------------------------------------------------------------------------------------------


def gang_outcome(engine: Engine, key: str) -> GangOutcome:
    """What would become of a gang at its turn."""
    trials = CureTrials(engine, key)
    with trials.after_turns(trials.earlier()):
        return _outcome(trials, trials.standing())


def _outcome(trials: CureTrials, standing: GangState) -> GangOutcome:
    problem = standing.gang.problem
    if problem is not None:
        return GangOutcome(state="problem", message=problem)
    need = standing.need()
    return _scheduled(trials, standing, need)


def _scheduled(trials: CureTrials, standing: GangState, need: Need) -> GangOutcome:
    """What scheduling makes of a gang that says what it needs."""
    with trials.after(()):
        plan = schedule(trials.cluster, trials.pending(), trials.engine.profile)
        started = trials.has_started()
    told = next((each for each in plan.gangs if each.gang == trials.key), None)
    if started or told is None:
        state = "runs" if not need.least and standing.running else "starts" if started else "waits"
        message = next((each.message for each in plan.unschedulable), "")
        if state == "waits":
            message = f"no pod of it may be tried, and it needs {need.least}"
        return _told(state, plan, told, message)
    if told.nominated:
        return _told("leaving", plan, told, told.message)
    if need.least > len(standing.waiting):
        return _told("waits", plan, told, told.message)
    lack = gang_shortage(trials.placer, need)
    outcome = _told("waits", plan, told, told.message or lack.message)
    return replace(outcome, best=lack.best, wanted=lack.wanted, where=dict(lack.where), reasons=lack.reasons)


def _told(state: str, plan: Plan, told: GangPlan | None, message: str) -> GangOutcome:
    nodes = {each.pod: each.node for each in plan.binds} | {each.pod: each.node for each in plan.nominated}
    if told is None:
        return GangOutcome(state=state, message=message)
    return GangOutcome(
        state=state,
        message=message or told.message,
        nodes=nodes,
        domain=told.domain,
        evicts=told.evicts,
        budgets_broken=told.budgets_broken,
        reasons=told.reasons,
    )
