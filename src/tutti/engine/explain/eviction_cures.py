"""Cures in other pods: some that run elsewhere, some that go, and the priority from which on the gang does it itself.

Contract: everything given has been tried. Whom the engine would choose is chosen, whatever the priorities; but pods of
the system (priority 2,000,000,000 and above) and pods that belong to their node stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.cluster.edits import Remove
from tutti.cluster.node_edits import belongs_to_node
from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.explain.group_edits import with_priority
from tutti.engine.explain.pod_cures import members, objects, puts
from tutti.engine.preemption.gang_preemption import Evictions, GangPreemption
from tutti.engine.session.plan import Plan
from tutti.kube.objects import Pod

_SYSTEM = 2_000_000_000
"""The priority of system-cluster-critical."""
_HIGHEST = 1_000_000_000
"""The highest priority that a user may give."""
_MOVED = 5
"""Moves that a text names."""


def with_evictions(trials: CureTrials, cure: Cure, plan: Plan) -> Cure:
    """The cure with what the gang does to others once it is made."""
    victims = tuple(each.pod for each in plan.evictions)
    if not victims:
        return cure
    highest = max(each.priority for each in plan.evictions)
    text = f"{cure.text}; it then evicts {trials.named(victims)}"
    return replace(cure, text=text, evicts=victims, priority=highest)


def moving(trials: CureTrials) -> Iterator[Cure]:
    """The fewest pods that could make room by running elsewhere."""
    cluster, need = trials.cluster, trials.standing().need()
    found = GangPreemption(trials.placer, trials.gangs, need, priority=_SYSTEM - 1, gang=trials.key, move=True).run()
    if found is None or not found.moves or found.leaving:
        return
    pods = [cluster.pod(move.pod) for move in found.moves]
    if any(map(belongs_to_node, pods)):
        return
    moved = list(zip(pods, found.moves, strict=True))
    edits = puts(replace(pod, spec=replace(pod.spec, node_name=move.node)) for pod, move in moved)
    if trials.carried_out(edits, preemption=False) is None:
        return
    nodes = {pod.key: cluster.pods.node_names[cluster.pod_row(pod.key)] for pod in pods}
    said = [f"{trials.named((m.pod,))} from {nodes[m.pod]} to {m.node}" for m in found.moves[:_MOVED]]
    more = f" and {len(pods) - _MOVED} more pods" if len(pods) > _MOVED else ""
    yield Cure(kind="move", text=f"move {', '.join(said)}{more}", edits=edits)


def evicting(trials: CureTrials) -> Iterator[Cure]:
    """The least loss of others that lets the gang start, and the priority with which it would come about by itself."""
    cluster, need = trials.cluster, trials.standing().need()
    search = GangPreemption(trials.placer, trials.gangs, need, priority=_SYSTEM, gang=trials.key)
    found = search.run_without_victims() or search.run()
    if found is None or any(belongs_to_node(cluster.pod(pod)) for pod in found.victims):
        return
    if found.victims:
        yield from _raised(trials, found)
    edits = tuple(Remove(Pod.KIND, pod) for pod in (*found.victims, *found.leaving))
    if trials.carried_out(edits, preemption=False) is None:
        return
    wait = f"wait until {trials.named(found.leaving)} ha{'s' if len(found.leaving) == 1 else 've'} left"
    if not found.victims:
        yield Cure(kind="wait", text=wait, edits=edits)
        return
    rows = [cluster.pod_row(pod) for pod in found.victims]
    highest = max(int(cluster.pods.priority[row]) for row in rows)
    gangs = sorted({key for row in rows if (key := trials.gangs.key_of(row)) is not None})
    broken = [key for key in gangs if _breaks(trials, key, rows)]
    costs = [f"priority {highest}", *(f"breaks gang {trials.named((key,))}" for key in broken)]
    if found.violations:
        costs.append(f"breaks {found.violations} disruption budget{'' if found.violations == 1 else 's'}")
    yield Cure(
        kind="evict",
        text=f"evict {trials.named(found.victims)} ({'; '.join(costs)}){f', and {wait}' if found.leaving else ''}",
        edits=edits,
        evicts=found.victims,
        priority=highest,
        gangs_broken=len(broken),
        budgets_broken=found.violations,
    )


def _breaks(trials: CureTrials, key: str, gone: list[int]) -> bool:
    """Say whether a gang falls below a minimum without some pods."""
    with trials.after([Remove(Pod.KIND, trials.cluster.pods.keys[row]) for row in gone]):
        return not trials.gangs.rows(key) or bool(trials.gangs.state(key, ()).need().least)


def _raised(trials: CureTrials, found: Evictions) -> Iterator[Cure]:
    """The priority from which on the gang would make room for itself."""
    turn = trials.turn()
    highest = max(_importance(trials, trials.cluster.pod_row(pod)) for pod in found.victims)
    if turn is None or not trials.may_preempt() or not turn.priority <= highest < _HIGHEST:
        return
    native = trials.gangs.gang(trials.key).dialect == "native"  # whose pods must be alike
    pods = members(trials) if native else trials.waiting()
    raised = [replace(pod, spec=replace(pod.spec, priority=highest + 1, priority_class_name=None)) for pod in pods]
    edits = puts((*with_priority(objects(trials), highest + 1, trials.find), *raised))
    plan = trials.carried_out(edits)
    if plan is not None:
        cure = Cure(kind="priority", text=f"raise its priority above {highest}", edits=edits)
        yield with_evictions(trials, cure, plan)


def _importance(trials: CureTrials, row: int) -> int:
    """The priority of a pod, or of the gang that it is part of."""
    gangs, priorities = trials.gangs, trials.cluster.pods.priority
    key = gangs.key_of(row)
    if key is None:
        return int(priorities[row])
    stated = gangs.gang(key).priority
    running = gangs.state(key, ()).running
    return stated if stated is not None else int(priorities[list(running)].max())
