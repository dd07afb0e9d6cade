"""What a scheduler has in mind about one pod or one gang, as text like that of `kubectl describe`.

Contract: pure; the state is the answer to a question about this pod or gang. An unknown one raises `NotFoundError`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tutti.exceptions import NotFoundError
from tutti.present.inspection.ages import age, until
from tutti.present.inspection.state_tables import GANG_STATUS
from tutti.present.plan_rows import split_key
from tutti.present.tables import NONE, counted, printable, table
from tutti.wire.scheduler_state import PodState, QueuedTurn, SchedulerState

_STATE = {"bound": "Bound", "assumed": "Assumed", "waiting": "Waiting", "not considered": "Skipped"}
_WAITS_FOR = {
    "room": "room: no node takes it as it is",
    "members": "members: further pods of the gang must be created",
    "victims": "victims: evicted pods must leave their nodes first",
    "budgets": "budgets: disruption budgets must allow to evict pods first",
    "correction": "correction: an object is invalid or not supported",
}
_WIDTH = 13


def pod_text(state: SchedulerState, name: str) -> str:
    """Return what is known of a pod."""
    if not state.pods:
        raise NotFoundError(f"the scheduler knows no pod {name} in namespace {state.namespace}")
    pod = state.pods[0]
    lines = [_line("Pod", split_key(pod.pod)[1]), _line("Namespace", state.namespace), _line("State", _pod_state(pod))]
    if pod.gang:
        lines.append(_line("Gang", f"gang/{split_key(pod.gang)[1]}"))
    lines.append(_line("Priority", str(pod.priority)))
    if pod.message:
        lines.append(_line("Message", pod.message))
    lines += _binding(state, pod)
    lines += _turns(state)
    lines += _holds(state)
    return "\n".join(lines)


def gang_text(state: SchedulerState, name: str) -> str:
    """Return what is known of a gang, with a table of its pods."""
    if not state.gangs:
        raise NotFoundError(f"the scheduler knows no gang {name} in namespace {state.namespace}")
    gang = state.gangs[0]
    spread = f" on {counted(gang.nodes, 'node')}" if gang.nodes else ""
    lines = [
        _line("Gang", gang.name),
        _line("Namespace", gang.namespace),
        _line("Dialect", gang.dialect),
        _line("State", GANG_STATUS.get(gang.phase, gang.phase)),
        _line("Pods", f"{gang.running} run{spread}, {gang.waiting} wait; the minimum is {gang.minimum}"),
        _line("Priority", str(gang.priority)),
    ]
    if gang.message and not state.queue:
        lines.append(_line("Message", gang.message))
    lines += _turns(state)
    held = {hold.owner: f"{hold.node} (reserved)" if hold.reserved else hold.node for hold in state.holds}
    in_flight = {each.pod for each in state.assumed if each.in_flight}
    rows = [
        (
            split_key(pod.pod)[1],
            "Binding" if pod.pod in in_flight else _pod_state(pod, short=True),
            pod.node or NONE,
            held.get(pod.pod, NONE),
        )
        for pod in state.pods
    ]
    if rows:
        lines += ["", table(("POD", "STATE", "NODE", "ROOM HELD ON"), rows)]
    rest = state.left_out.get("pods", 0)
    return "\n".join(lines) + (f"\n{rest:,} more: use --limit" if rest else "")


def _pod_state(pod: PodState, *, short: bool = False) -> str:
    word = "Terminating" if pod.terminating else _STATE[pod.state]
    return f"{word} to {pod.node}" if pod.node and not short and word in ("Bound", "Assumed") else word


def _binding(state: SchedulerState, pod: PodState) -> Iterator[str]:
    """Yield what has become of the binding of an assumed pod."""
    if pod.state == "assumed":
        is_sent = any(each.pod == pod.pod and each.in_flight for each in state.assumed)
        yield _line("Binding", "sent, no answer yet" if is_sent else "to be sent, or sent and not yet reported back")


def _turns(state: SchedulerState) -> Iterator[str]:
    for turn in state.queue:
        what = {"surplus": " (the pods above the gang's minimum)", "gang": " (the gang)", "pod": ""}[turn.kind]
        yield _line("Queue", f"position {turn.position}{what}")
        if turn.attempts:
            last = f"{age(state.time, turn.tried)} ago"
            many = f"{turn.attempts:,} times in {age(state.time, turn.since)}, the last {last}"
            yield _line("Tried", f"once, {last}" if turn.attempts == 1 else many)
        if turn.waits_for:
            yield _line("Waits for", _WAITS_FOR.get(turn.waits_for, turn.waits_for))
        yield _line("Next try", _next_try(state, turn))
        if turn.message:
            yield _line("Message", turn.message)


def _next_try(state: SchedulerState, turn: QueuedTurn) -> str:
    if turn.state == "due":
        return "in the next session"
    if turn.state == "backoff":
        return f"in {until(state.time, turn.next_try)}, when its backoff is over"
    changes = " or ".join(filter(None, (", ".join(turn.cures[:-1]), *turn.cures[-1:])))
    first = f"after a change ({changes})" if changes else "when its pods or its group change"
    return f"{first}, at the latest in {until(state.time, turn.next_try)}" if turn.next_try else first


def _holds(state: SchedulerState) -> Iterator[str]:
    for hold in state.holds:
        why = "reserved" if hold.reserved else "held until victims have left"
        amounts = ", ".join(f"{name} {amount}" for name, amount in hold.amounts.items())
        end = f", expires in {until(state.time, hold.until)}" if hold.until is not None else ""
        yield _line("Room", f"{why} on node {hold.node} ({amounts}){end}")


def _line(label: str, text: str) -> str:
    return f"{label + ':':<{_WIDTH}}{printable(text)}"
