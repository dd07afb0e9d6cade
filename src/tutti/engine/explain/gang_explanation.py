"""The explanation of one gang: its state, what would become of it at its turn, what stops it, and what would cure that.

Contract: a what-if that leaves the cluster unchanged. The outcome is what the plan for all pending pods, that of
`tutti schedule`, does with the gang. What stops a waiting gang, and what would cure that, is asked at the gang's turn:
all turns that come earlier in the queue (`before`) are taken first, and later turns are not. A cure is returned only if
the gang starts after its edits when all pending pods are scheduled again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.explain.cures import Tell, find_cures
from tutti.engine.gangs.gang_state import GangPhase, GangState
from tutti.engine.placement.engine import Engine
from tutti.engine.reasons.domain_fits import DomainFit, domain_fits
from tutti.engine.reasons.gang_shortage import gang_shortage
from tutti.engine.session.plan import Turn
from tutti.engine.session.queue_order import not_considered
from tutti.engine.session.schedule import schedule
from tutti.exceptions import NotFoundError
from tutti.kube.gangs.gang import GangPart, GangTopology


class _Record(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pass


class PodCounts(_Record, frozen=True):
    """The number of a gang's pods by state."""

    running: int = 0
    waiting: int = 0
    gated: int = 0
    terminating: int = 0
    elsewhere: int = 0
    """Pending, with the `schedulerName` of another scheduler."""


class GangPartStatus(_Record, frozen=True):
    """The requirements and pods of one part of a gang; pods of inner parts are not counted."""

    name: str
    minimum: int
    running: int = 0
    waiting: int = 0
    topology: GangTopology = GangTopology()
    parts: tuple[GangPartStatus, ...] = ()
    parts_needed: int | None = None


class EarlierTurns(_Record, frozen=True):
    """How many gangs and pods come before a gang in the queue."""

    gangs: int = 0
    pods: int = 0
    """Pods without a gang."""


class GangOutcome(_Record, frozen=True):
    """What would become of a gang when all pending pods are scheduled."""

    state: str
    """runs, starts, leaving (starts when its victims have left), waits, or problem."""
    message: str = ""
    """Why the gang or its surplus waits, in one sentence."""
    best: int = 0
    """The number of needed pods that fit, in the area where most fit."""
    wanted: int = 0
    """The number of pods that the gang still needs."""
    where: dict[str, str] = {}
    """Labels and values of the area in which `best` pods fit."""
    nodes: dict[str, str] = {}
    """The node of each placed or nominated pod."""
    domain: dict[str, str] = {}
    """The required or preferred labels whose value all its pods then share, with that value."""
    evicts: tuple[str, ...] = ()
    budgets_broken: int = 0
    reasons: dict[str, int] = {}
    """The number of nodes that refuse the first pod without a place, by message."""


class GangExplanation(_Record, frozen=True):
    """The explanation of one gang."""

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
    """Why the gang's description is invalid, so that it cannot be scheduled on any cluster."""
    before: EarlierTurns = EarlierTurns()
    domain_key: str | None = None
    """The label whose values are the domains."""
    domain_count: int = 0
    domains: tuple[DomainFit, ...] = ()
    """The domains in which most of its pods fit, if it waits and requires a label."""
    cures: tuple[Cure, ...] = ()


def explain_gang(engine: Engine, key: str, tell: Tell = lambda _: None) -> GangExplanation:
    """Explain the gang with a key; `tell` receives progress messages."""
    trials = CureTrials(engine, key)
    if not trials.gangs.rows(key):
        raise NotFoundError(f"no pod names gang {key!r}")
    tell("what comes before it")
    earlier_turns = trials.earlier_turns()
    explanation = replace(_description(trials), before=_count_earlier_turns(trials, earlier_turns))
    tell("its place")
    outcome = _outcome(trials)
    if outcome.state not in ("waits", "problem"):
        return replace(explanation, outcome=outcome)
    with trials.at_turn():
        explanation = _explain_waiting(trials, replace(explanation, outcome=outcome), tell)
    rechecked = (trials.recheck_with_pending(cure, earlier_turns) for cure in explanation.cures)
    return replace(explanation, cures=tuple(cure for cure in rechecked if cure is not None))


def _description(trials: CureTrials) -> GangExplanation:
    """Return what the gang requires and which pods it has, before any pod is scheduled."""
    state = trials.gang_state()
    gang, (namespace, _, name) = state.gang, trials.key.partition("/")
    return GangExplanation(
        name=name,
        namespace=namespace,
        dialect=gang.dialect,
        priority=trials.gangs.priority(trials.key),
        minimum=gang.minimum,
        maximum=gang.maximum,
        topology=gang.topology,
        parts=_parts(state, gang.parts),
        parts_needed=gang.parts_needed,
        disruption=gang.disruption.value,
        pods=_counts(trials, trials.gangs.rows(trials.key)),
        problem=gang.problem,
        outcome=GangOutcome(state=""),
    )


def _explain_waiting(trials: CureTrials, explanation: GangExplanation, tell: Tell) -> GangExplanation:
    """Add what stops a gang at its turn, and what would cure that; the turns before it are taken."""
    state, outcome = trials.gang_state(), explanation.outcome
    need = state.need()
    label: str | None = None
    count, domains = 0, list[DomainFit]()
    if outcome.state == "waits" and 0 < need.least <= len(state.waiting):
        shortage = gang_shortage(trials.placer, need)
        outcome = replace(
            outcome,
            best=shortage.best,
            wanted=shortage.wanted,
            where=dict(shortage.where),
            reasons=shortage.reasons,
        )
        label, count, domains = domain_fits(trials.placer, need)
    return replace(
        explanation,
        outcome=outcome,
        domain_key=label,
        domain_count=count,
        domains=tuple(domains),
        cures=find_cures(trials.engine, trials.key, tell),
    )


def _parts(gang_state: GangState, parts: Sequence[GangPart]) -> tuple[GangPartStatus, ...]:
    part_of = gang_state.part_of
    return tuple(
        GangPartStatus(
            name=part.name,
            minimum=part.minimum,
            running=sum(part_of[row] == part.name for row in gang_state.running),
            waiting=sum(part_of[row] == part.name for row in gang_state.waiting),
            topology=part.topology,
            parts=_parts(gang_state, part.parts),
            parts_needed=part.parts_needed,
        )
        for part in parts
    )


def _counts(trials: CureTrials, rows: Sequence[int]) -> PodCounts:
    pods = trials.cluster.pods
    counts = dict.fromkeys(PodCounts.__struct_fields__, 0)
    causes = {"gated": "gated", "terminating": "terminating", "other scheduler": "elsewhere"}
    for row in rows:
        pod = pods.objects[row]
        if pod is None or pods.terminating[row]:
            counts["terminating"] += pod is not None
        elif pods.node_names[row] is not None:
            counts["running"] += 1
        else:
            skipped = not_considered(pod, trials.engine.profile)
            counts["waiting" if skipped is None else causes[skipped.cause]] += 1
    return PodCounts(**counts)


def _count_earlier_turns(trials: CureTrials, earlier_turns: Sequence[Turn]) -> EarlierTurns:
    """Count the gangs and single pods among earlier turns."""
    gangs = pods = 0
    for turn in earlier_turns:
        if turn.surplus:
            continue
        if turn.gang is None:
            pods += 1
            continue
        rows = [trials.cluster.pod_row(pod) for pod in turn.pods]
        gang_state = trials.gangs.state(turn.gang, rows)
        gangs += gang_state.gang.problem is None and gang_state.is_short
    return EarlierTurns(gangs=gangs, pods=pods)


# The outcome ----------------------------------------------------------------------------------------------------------


def gang_outcome(engine: Engine, key: str) -> GangOutcome:
    """Return what would become of a gang when all pending pods are scheduled."""
    return _outcome(CureTrials(engine, key))


def _outcome(trials: CureTrials) -> GangOutcome:
    """Return what the plan for all pending pods does with the gang."""
    state = trials.gang_state()
    if state.phase is GangPhase.PROBLEM or (state.gang.is_being_deleted and state.waiting):
        return GangOutcome(state="problem", message=state.gang.refusal or "")
    if trials.turn() is None:
        return _untried_outcome(state)
    with trials.with_edits(()):
        plan = schedule(trials.cluster, None, trials.engine.profile)
        has_started = trials.has_started()
    gang_plan = next(each for each in plan.gangs if each.gang == trials.key)
    nodes = {each.pod: each.node for each in plan.binds if each.gang == trials.key}
    nodes |= {each.pod: each.node for each in plan.nominated if each.gang == trials.key}
    unplaced = next((each.message for each in plan.unschedulable if each.gang == trials.key), "")
    if has_started:
        name = "runs" if state.phase is GangPhase.WHOLE else "starts"
    else:
        name = "leaving" if gang_plan.nominated else "waits"
    return GangOutcome(
        state=name,
        message=gang_plan.message or unplaced,
        nodes=nodes,
        domain=gang_plan.domain,
        evicts=gang_plan.evicts,
        budgets_broken=gang_plan.budgets_broken,
        reasons=gang_plan.reasons,
    )


def _untried_outcome(state: GangState) -> GangOutcome:
    """Return the outcome of a gang of which the scheduler tries no pod."""
    if state.phase is GangPhase.WHOLE:
        return GangOutcome(state="runs")
    needed = state.need().least
    return GangOutcome(
        state="waits", message=f"the scheduler may not try any pod of the gang, and the gang needs {needed}"
    )
