"""Cures that change other pods: move them, evict them, or raise the gang's priority so that the gang evicts them.

Contract: every cure has been tried. The engine chooses the victims, regardless of their priorities; but system pods
(priority 2,000,000,000 and above) and pods that belong to their node (DaemonSet and static pods) are never evicted.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.cluster.edits import Remove
from tutti.cluster.node_edits import belongs_to_node
from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.explain.group_edits import with_priority
from tutti.engine.explain.pod_cures import gang_members, gang_objects, put_edits
from tutti.engine.preemption.gang_preemption import Evictions, GangPreemption
from tutti.engine.session.plan import Plan
from tutti.kube.objects import Pod

_SYSTEM_PRIORITY = 2_000_000_000
"""The priority of system-cluster-critical."""
_MAX_USER_PRIORITY = 1_000_000_000
"""The highest priority that a user may set."""
_MAX_MOVES_NAMED = 5
"""The maximum number of moves that a text names."""


def with_evictions(trials: CureTrials, cure: Cure, plan: Plan) -> Cure:
    """Return the cure with the evictions that the gang makes in the plan after the cure's edits."""
    victims = tuple(each.pod for each in plan.evictions)
    if not victims:
        return cure
    highest = max(each.priority for each in plan.evictions)
    text = f"{cure.text}; it then evicts {trials.format_names(victims)}"
    return replace(cure, text=text, evicts=victims, priority=highest)


def move_cures(trials: CureTrials) -> Iterator[Cure]:
    """Yield the cure that moves the fewest running pods to other nodes, if there is one."""
    cluster, need, priority = trials.cluster, trials.gang_state().need(), _SYSTEM_PRIORITY - 1
    evictions = GangPreemption(trials.placer, trials.gangs, need, priority=priority, gang=trials.key, move=True).run()
    if evictions is None or not evictions.moves or evictions.leaving:
        return
    pods = [cluster.pod(move.pod) for move in evictions.moves]
    if any(map(belongs_to_node, pods)):
        return
    moved = list(zip(pods, evictions.moves, strict=True))
    edits = put_edits(replace(pod, spec=replace(pod.spec, node_name=move.node)) for pod, move in moved)
    if trials.starting_plan(edits, preemption=False) is None:
        return
    nodes = {pod.key: cluster.pods.node_names[cluster.pod_row(pod.key)] for pod in pods}
    named_moves = evictions.moves[:_MAX_MOVES_NAMED]
    move_texts = [f"{trials.format_names((m.pod,))} from {nodes[m.pod]} to {m.node}" for m in named_moves]
    more = f" and {len(pods) - _MAX_MOVES_NAMED} more pods" if len(pods) > _MAX_MOVES_NAMED else ""
    yield Cure(kind="move", text=f"move {', '.join(move_texts)}{more}", edits=edits)


def eviction_cures(trials: CureTrials) -> Iterator[Cure]:
    """Yield the least harmful evictions that let the gang start, and the priority with which the gang makes them."""
    cluster, need = trials.cluster, trials.gang_state().need()
    search = GangPreemption(trials.placer, trials.gangs, need, priority=_SYSTEM_PRIORITY, gang=trials.key)
    evictions = search.run_without_victims() or search.run()
    if evictions is None or any(belongs_to_node(cluster.pod(pod)) for pod in evictions.victims):
        return
    if evictions.victims:
        yield from _priority_cures(trials, evictions)
    edits = tuple(Remove(Pod.KIND, pod) for pod in (*evictions.victims, *evictions.leaving))
    if trials.starting_plan(edits, preemption=False) is None:
        return
    has_or_have = "has" if len(evictions.leaving) == 1 else "have"
    wait_text = f"wait until {trials.format_names(evictions.leaving)} {has_or_have} left"
    if not evictions.victims:
        yield Cure(kind="wait", text=wait_text, edits=edits)
        return
    rows = [cluster.pod_row(pod) for pod in evictions.victims]
    highest = max(int(cluster.pods.priority[row]) for row in rows)
    gangs = sorted({key for row in rows if (key := trials.gangs.key_of(row)) is not None})
    broken = [key for key in gangs if _is_broken_without(trials, key, rows)]
    cost_texts = [f"priority {highest}", *(f"breaks gang {trials.format_names((key,))}" for key in broken)]
    if evictions.violations:
        cost_texts.append(f"breaks {evictions.violations} disruption budget{'' if evictions.violations == 1 else 's'}")
    and_wait = f", and {wait_text}" if evictions.leaving else ""
    yield Cure(
        kind="evict",
        text=f"evict {trials.format_names(evictions.victims)} ({'; '.join(cost_texts)}){and_wait}",
        edits=edits,
        evicts=evictions.victims,
        priority=highest,
        gangs_broken=len(broken),
        budgets_broken=evictions.violations,
    )


def _is_broken_without(trials: CureTrials, key: str, removed_rows: list[int]) -> bool:
    """Return whether a gang falls below a minimum without the pods in these rows."""
    with trials.with_edits([Remove(Pod.KIND, trials.cluster.pods.keys[row]) for row in removed_rows]):
        return not trials.gangs.rows(key) or trials.gangs.state(key, ()).is_short


def _priority_cures(trials: CureTrials, evictions: Evictions) -> Iterator[Cure]:
    """Yield the cure that raises the gang's priority above that of its victims, if the gang then starts."""
    turn = trials.turn()
    highest = max(_effective_priority(trials, trials.cluster.pod_row(pod)) for pod in evictions.victims)
    if turn is None or not trials.may_preempt() or not turn.priority <= highest < _MAX_USER_PRIORITY:
        return
    is_native = trials.gangs.gang(trials.key).dialect == "native"  # native gangs require pods that are alike
    pods = gang_members(trials) if is_native else trials.waiting_pods()
    raised_pods = [replace(pod, spec=replace(pod.spec, priority=highest + 1, priority_class_name=None)) for pod in pods]
    edits = put_edits((*with_priority(gang_objects(trials), highest + 1, trials.find_object), *raised_pods))
    plan = trials.starting_plan(edits)
    if plan is not None:
        cure = Cure(kind="priority", text=f"raise its priority above {highest}", edits=edits)
        yield with_evictions(trials, cure, plan)


def _effective_priority(trials: CureTrials, row: int) -> int:
    """Return the priority of the gang of the pod in a row, or of the pod if it has no gang."""
    key = trials.gangs.key_of(row)
    return int(trials.cluster.pods.priority[row]) if key is None else trials.gangs.priority(key)
