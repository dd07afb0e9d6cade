"""Audits a recommended plan: independent arithmetic, and a check by the engine whether every node is needed.

Contract: `problems` yields a line for everything that is wrong with a plan: pods lost or placed twice, gangs in part,
nodes over their room, limits exceeded, money that does not add up, a bound above the cost. `unreachable` has all nodes
join and binds the pods as the plan says, in whatever order the engine's filters allow it; it names those that they
never do. `needless` takes bought nodes away, one at a time, and names those without which every placed pod still has a
node.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind
from tutti.cluster.node_edits import new_node_like
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.evaluator import FilterResult
from tutti.engine.session.schedule import schedule
from tutti.kube.gangs.coscheduling import LABEL
from tutti.kube.objects import KINDS, CoschedulingPodGroup, Node, Object, Pod
from tutti.kube.quantity import milli, value
from tutti.kube.workloads.daemon_sets import daemon_pods
from tutti.kube.workloads.owners import OwnedPods
from tutti.market.offerings import NODES, Offering, PoolLimit
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Request


def problems(request: Request, answer: Recommendation) -> list[str]:
    """Return a line for every error in a plan."""
    return [
        *_pods(request, answer),
        *_gangs(request, answer),
        *_nodes(request, answer),
        *_limits(request, answer),
        *_money(answer),
    ]


def _pods(request: Request, answer: Recommendation) -> Iterator[str]:
    waiting = {pod.key for pod in _pods_of(request) if pod.spec.node_name is None}
    seen = Counter(pod for node in answer.nodes for pod in node.pods)
    seen.update(each.pod for each in answer.on_existing)
    if answer.placed != sum(seen.values()):
        yield f"{answer.placed} pods are placed, it says; {sum(seen.values())} are"
    seen.update(each.pod for each in answer.left)
    for pod, times in seen.items():
        if pod not in waiting:
            yield f"{pod} does not wait"
        elif times > 1:
            yield f"{pod} is there {times} times"
    for pod in sorted(waiting - set(seen))[:5]:
        yield f"{pod} is lost"


def _gangs(request: Request, answer: Recommendation) -> Iterator[str]:
    placed = _where(answer)
    members: dict[str, list[str]] = {}
    for pod in _pods_of(request):
        if (gang := (pod.metadata.labels or {}).get(LABEL)) is not None:
            members.setdefault(f"{pod.metadata.namespace}/{gang}", []).append(pod.key)
    for group in request.objects:
        if isinstance(group, CoschedulingPodGroup):
            number = sum(pod in placed for pod in members.get(group.key, ()))
            if 0 < number < (group.spec.min_member or 0):
                yield f"gang {group.key}: {number} of {group.spec.min_member} pods are placed"


def _nodes(request: Request, answer: Recommendation) -> Iterator[str]:
    by_name = {pod.key: pod for pod in _pods_of(request)}
    there = {node.metadata.name: node for node in request.objects if isinstance(node, Node)}
    names = Counter(node.name for node in answer.nodes)
    yield from (f"node {name} is bought {n} times" for name, n in names.items() if n > 1)
    yield from (f"node {name} is there already" for name in names if name in there)
    ups = Counter(name for up in answer.scale_up for name in up.node_names)
    if ups != names or any(up.increment != len(up.node_names) for up in answer.scale_up):
        yield "the increments are not the nodes"
    for new in answer.nodes:
        if not new.pods:
            yield f"node {new.name} has no pods"
        node = new_node_like(offering_of(request, new).node, new.name)
        daemons = daemons_on(request, node)
        yield from _room(new.name, node, [*daemons, *(by_name[pod] for pod in new.pods if pod in by_name)])
    users: dict[str, list[Pod]] = {each.node: [] for each in answer.on_existing}
    for pod in by_name.values():
        if pod.spec.node_name in users:
            users[pod.spec.node_name].append(pod)
    for each in answer.on_existing:
        users[each.node].append(by_name[each.pod])
    for name, pods in users.items():
        yield from _room(name, there[name], pods)


def _room(name: str, node: Node, pods: Iterable[Pod]) -> Iterator[str]:
    used = Counter[str]()
    for pod in pods:
        used["pods"] += 1
        for container in pod.spec.containers or ():
            asks = (container.resources.requests if container.resources else None) or {}
            used.update({what: amount_of(what, amount) for what, amount in asks.items()})
    has = {what: amount_of(what, amount) for what, amount in (node.status.allocatable or {}).items()}
    for what, amount in used.items():
        if amount > has.get(what, 0):
            yield f"node {name}: {amount} of {has.get(what, 0)} {what}"


def _limits(request: Request, answer: Recommendation) -> Iterator[str]:
    pools = request.catalogue.pools
    limits = [(pool.name, limit) for pool in pools for limit in pool.limits]
    for pool, limit in [*limits, *((None, limit) for limit in request.catalogue.limits)]:
        bought = [node for node in answer.nodes if pool in (None, node.pool) and limit.zone in (None, node.zone)]
        used = sum(_takes(limit, offering_of(request, node)) for node in bought)
        if used > limit.left:
            yield f"{used} {limit.what} are bought: {limit.reason}"


def _takes(limit: PoolLimit, offering: Offering) -> int:
    status = offering.node.status
    amounts = status.capacity or status.allocatable or {}
    return 1 if limit.what == NODES else amount_of(limit.what, amounts.get(limit.what, 0))


def _money(answer: Recommendation) -> Iterator[str]:
    prices = [node.price for node in answer.nodes]
    cost = None if None in prices else sum(price for price in prices if price is not None)
    if cost != answer.cost:
        yield f"the cost is {cost}, not {answer.cost}"
    if (
        answer.objective == "cost"
        and answer.cost is not None
        and answer.bound is not None
        and answer.bound > answer.cost
    ):
        yield f"the bound {answer.bound} is above the cost {answer.cost}"


# The engine's word ----------------------------------------------------------------------------------------------------


def unreachable(request: Request, answer: Recommendation) -> list[str]:
    """The pods that cannot come to be where a plan puts them.

    They are bound in rounds, each as soon as the engine allows its node. For spreads over the pod's own kind and for
    affinity that finds an order if there is one; where pods spread by counting others, it may miss one.
    """
    where = _where(answer)
    cluster = _cluster(request, answer, dict.fromkeys(where))
    evaluator = Engine(cluster).evaluator
    todo = list(where)
    while todo:
        refused = []
        for pod in todo:
            found = evaluator.filter(evaluator.incoming_pod(cluster.pod_row(pod)))
            if isinstance(found, FilterResult) and found.feasible[cluster.node_row(where[pod])]:
                cluster.apply(Bind(pod, where[pod]))
            else:
                refused.append(pod)
        if len(refused) == len(todo):
            break
        todo = refused
    return todo


def needless(request: Request, answer: Recommendation, times: int) -> list[str]:
    """The nodes, of so many drawn ones, without which all that is placed has a node just as well."""
    chosen = random.Random(0).sample(answer.nodes, min(times, len(answer.nodes)))
    return [node.name for node in chosen if _does_without(request, answer, node)]


def _does_without(request: Request, answer: Recommendation, gone: NewNode) -> bool:
    """Whether the pods of a plan have nodes without one of the nodes it buys.

    Where kube-scheduler places pods, all are placed again; where Tutti does, those of the node find other places.
    """
    where = _where(answer)
    moving = set(where) if answer.binder == Binder.KUBE_SCHEDULER else set(gone.pods)
    cluster = _cluster(request, answer, {p: None if p in moving else node for p, node in where.items()}, gone.name)
    return len(schedule(cluster, moving, preemption=False).binds) == len(moving)


def _cluster(request: Request, answer: Recommendation, pods: Mapping[str, str | None], gone: str = "") -> Cluster:
    """The cluster with what is bought, all but one node, and with these pods of those that waited, where they are."""
    by_kind: dict[str, list[Object]] = {kind: [] for kind in KINDS}
    for obj in request.objects:
        if isinstance(obj, Pod) and obj.spec.node_name is None:
            if obj.key not in pods:
                continue
            obj = replace(obj, spec=replace(obj.spec, node_name=pods[obj.key]))
        by_kind[obj.KIND].append(obj)
    for new in answer.nodes:
        if new.name != gone:
            node = new_node_like(offering_of(request, new).node, new.name)
            by_kind[Node.KIND].append(node)
            by_kind[Pod.KIND] += daemons_on(request, node)
    return Cluster([obj for objects in by_kind.values() for obj in objects])


# Help -----------------------------------------------------------------------------------------------------------------


def _where(answer: Recommendation) -> dict[str, str]:
    """The node of every pod that a plan places."""
    return {pod: node.name for node in answer.nodes for pod in node.pods} | {
        each.pod: each.node for each in answer.on_existing
    }


def offering_of(request: Request, new: NewNode) -> Offering:
    """The offering that a bought node is one of."""
    what = new.instance_type, new.zone, new.capacity_type
    pool = next(pool for pool in request.catalogue.pools if pool.name == new.pool)
    return next(each for each in pool.offerings if (each.instance_type, each.zone, each.capacity_type) == what)


def daemons_on(request: Request, node: Node) -> list[Pod]:
    """The daemons' pods that a new node runs."""
    made = [pod for daemon in request.daemon_sets for pod in daemon_pods(daemon, OwnedPods(()), nodes=[node])]
    return [replace(pod, spec=replace(pod.spec, node_name=node.metadata.name)) for pod in made]


def amount_of(resource: str, quantity: str | float) -> int:
    """A quantity as a number: millicores, or units."""
    return milli(quantity) if resource == "cpu" else value(quantity)


def _pods_of(request: Request) -> list[Pod]:
    return [obj for obj in request.objects if isinstance(obj, Pod)]
