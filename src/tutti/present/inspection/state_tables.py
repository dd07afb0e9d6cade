"""The lists of a scheduler's state as tables, as kubectl prints them.

Contract: pure. Every table ends with a line for what was left out, and an empty list is a sentence. Tables of all
namespaces have the column NAMESPACE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tutti.present.inspection.ages import age, human_duration, until
from tutti.present.plan_rows import Row, namespaced_table, split_key
from tutti.present.tables import NONE, counted, table
from tutti.wire.scheduler_state import GangSummary, PlanSummary, QueuedTurn, RoomHold, SchedulerState

GANG_STATUS = {"problem": "Refused", "waiting": "Waiting", "partial": "Partial", "whole": "Running"}
TURN_STATE = {"due": "Due", "backoff": "Backoff", "waiting": "Waiting"}

_QUEUE = (
    "NAMESPACE", "POS", "NAME", "PODS", "PRIORITY", "STATE", "WAITS FOR", "AGE", "TRIES", "LAST TRY", "NEXT TRY",
    "RETRIED ON", "MESSAGE",
)  # fmt: skip
_QUEUE_WIDE = ("LAST TRY", "RETRIED ON")
_GANGS = ("NAMESPACE", "NAME", "DIALECT", "RUNNING", "WAITING", "STATUS", "PRIORITY", "NODES", "MESSAGE")
_GANGS_WIDE = ("PRIORITY", "NODES")
_HOLDS = ("NAMESPACE", "OWNER", "NODE", "FOR", "PRIORITY", "EXPIRES", "AMOUNTS")
_ASSUMED = ("NAMESPACE", "POD", "NODE", "GANG", "BINDING")
_PLANS = ("AGE", "DURATION", "BINDS", "GANGS", "EVICTED", "NOMINATED", "WAITING")
_EVICTIONS = ("AGE", "EVICTED POD", "NODE", "MAKES ROOM FOR", "REASON")
_WATCHES = ("KIND", "RESOURCE", "OBJECTS", "SYNCED", "HEARD", "LISTS", "PROBLEM")


def table_text(state: SchedulerState, kind: str, *, wide: bool) -> str:
    """Return the table that `tutti inspect KIND` prints."""
    tables: dict[str, Callable[[], str]] = {
        "queue": lambda: queue_table(state, wide=wide),
        "gangs": lambda: gangs_table(state, wide=wide),
        "holds": lambda: holds_text(state),
        "plans": lambda: plans_text(state, wide=wide),
        "watches": lambda: watches_table(state),
    }
    return tables[kind]()


def queue_table(state: SchedulerState, *, wide: bool) -> str:
    """Return the turns that wait, in queue order."""
    rows = [_queue_row(state, turn) for turn in state.queue]
    text = namespaced_table(_QUEUE, rows, () if wide else _QUEUE_WIDE, namespaced=not state.namespace)
    return _with_rest(state, "queue", text or _nothing(state, "No pods wait"), "entry", "entries")


def _queue_row(state: SchedulerState, turn: QueuedTurn) -> Row:
    return (
        turn.namespace, turn.position, turn_name(turn), turn.pods, turn.priority, TURN_STATE[turn.state],
        turn.waits_for or NONE, age(state.time, turn.since), turn.attempts, age(state.time, turn.tried),
        next_try(state, turn), ", ".join(turn.cures) or NONE, turn.message,
    )  # fmt: skip


def turn_name(turn: QueuedTurn) -> str:
    """Return the name of a turn in a table."""
    return {"pod": turn.name, "gang": f"gang/{turn.name}", "surplus": f"gang/{turn.name} (surplus)"}[turn.kind]


def next_try(state: SchedulerState, turn: QueuedTurn) -> str:
    """Return when a turn is tried again."""
    if turn.state == "due":
        return "now"
    when = until(state.time, turn.next_try)
    return when if turn.state == "backoff" else f"change or {when}" if turn.next_try else "change"


def gangs_table(state: SchedulerState, *, wide: bool) -> str:
    """Return the gangs, those that need attention first."""
    rows = [_gang_row(gang) for gang in state.gangs]
    text = namespaced_table(_GANGS, rows, () if wide else _GANGS_WIDE, namespaced=not state.namespace)
    return _with_rest(state, "gangs", text or _nothing(state, "No gangs have pods"), "gang", "gangs")


def _gang_row(gang: GangSummary) -> Row:
    return (
        gang.namespace, gang.name, gang.dialect, f"{gang.running}/{gang.minimum}", gang.waiting,
        GANG_STATUS.get(gang.phase, gang.phase), gang.priority, gang.nodes, gang.message,
    )  # fmt: skip


def holds_text(state: SchedulerState) -> str:
    """Return the room that is held, the reservation, and the pods that are bound in memory only."""
    holds = namespaced_table(
        _HOLDS, [_hold_row(state, hold) for hold in state.holds], (), namespaced=not state.namespace
    )
    parts = [_with_rest(state, "holds", holds or _nothing(state, "No room is held"), "hold", "holds")]
    parts += reservation_line(state)
    assumed = [
        (*split_key(each.pod), each.node, split_key(each.gang)[1] or NONE, "in flight" if each.in_flight else "waits")
        for each in state.assumed
    ]
    if assumed:
        text = namespaced_table(_ASSUMED, assumed, (), namespaced=not state.namespace)
        parts.append("\n" + _with_rest(state, "assumed", text, "assumed pod", "assumed pods"))
    return "\n".join(parts)


def _hold_row(state: SchedulerState, hold: RoomHold) -> Row:
    amounts = ",".join(f"{name}={amount}" for name, amount in hold.amounts.items()) or NONE
    why = "reservation" if hold.reserved else "victims leave"
    expires = NONE if hold.until is None else until(state.time, hold.until)
    return (*split_key(hold.owner), hold.node, why, hold.priority, expires, amounts)


def reservation_line(state: SchedulerState) -> Iterator[str]:
    """Yield a line about the reservation, if there is one."""
    reserved = state.reservation
    if reserved is not None:
        namespace, name = split_key(reserved.turn.removeprefix("gang/"))
        owner = f"{'gang/' if reserved.turn.startswith('gang/') else ''}{name} in {namespace}"
        if not reserved.turn:
            owner = "for a pod or gang of another namespace"
        where = f" on {counted(len(reserved.nodes), 'node')}" if reserved.nodes else ""
        start = f", which can start in {until(state.time, reserved.until)}" if reserved.until is not None else ""
        yield f"Reservation:  {owner}{where}, since {age(state.time, reserved.since)}{start}"


def plans_text(state: SchedulerState, *, wide: bool) -> str:
    """Return the last sessions that decided something; `wide` adds their evictions."""
    if not state.plans:
        return _nothing(state, "No session has decided anything yet")
    text = table(_PLANS, [_plan_row(state, plan) for plan in state.plans])
    evictions = [
        (age(state.time, plan.time), each.pod, each.node, each.by or NONE, each.reason)
        for plan in state.plans
        for each in plan.evictions
    ]
    return f"{text}\n\n{table(_EVICTIONS, evictions)}" if wide and evictions else text


def _plan_row(state: SchedulerState, plan: PlanSummary) -> Row:
    waiting = ", ".join(f"{count} {cause}" for cause, count in plan.waiting.items()) or NONE
    duration = f"{plan.milliseconds:g}ms"
    counts = (plan.binds, plan.gangs_started, plan.evicted, plan.nominated)
    return (age(state.time, plan.time), duration, *counts, waiting)


def watches_table(state: SchedulerState) -> str:
    """Return the watches of the scheduler."""
    if not state.watches:
        return "You may not see the watches: they need the right to get /debug/state."
    rows: list[Sequence[object]] = []
    for each in sorted(state.watches, key=lambda watch: watch.kind):
        heard = NONE if each.heard_seconds_ago is None else f"{human_duration(each.heard_seconds_ago)} ago"
        synced = "yes" if each.synced else "no"
        rows.append((each.kind, each.resource, each.objects, synced, heard, each.lists, each.problem or NONE))
    return table(_WATCHES, rows)


def _nothing(state: SchedulerState, sentence: str) -> str:
    return f"{sentence} in namespace {state.namespace}." if state.namespace else f"{sentence}."


def _with_rest(state: SchedulerState, name: str, text: str, noun: str, nouns: str) -> str:
    rest = state.left_out.get(name, 0)
    return f"{text}\n{rest:,} more {noun if rest == 1 else nouns}: use --limit or -n" if rest else text
