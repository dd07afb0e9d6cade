"""A replay of a scale-down plan that trusts no part of the recommender.

The replay reads the objects as they came in, counts disruption budgets and gangs by itself, and asks the engine one
question only: whether a pod may be bound to the node that the plan names.
"""

from __future__ import annotations

from collections import Counter

from tests.support.builders import COSCHEDULING_LABEL
from tests.support.documents import Document
from tutti.cluster.edits import Bind, Put, Remove, Unbind
from tutti.cluster.node_edits import cordoned
from tutti.kube.objects import Node, Pod
from tutti.recommend.after_purchase import OfferingIndex, apply_recommendation
from tutti.recommend.request_cluster import planning_cluster


def violations(objects: list[Document], incoming, answer) -> list[str]:
    """What a plan breaks: budgets, gangs, rooms, minimums of pools, its own bill. Empty for a correct plan."""
    plan, found = answer.down, []
    planning = (
        apply_recommendation(answer, incoming).planning
        if answer.nodes or answer.on_existing
        else planning_cluster(incoming)
    )
    cluster = planning.cluster
    offered = OfferingIndex(incoming.catalogue)
    removed = {each.node for each in plan.removals}
    before = {key for key, row in cluster.pods.row_of.items() if cluster.pods.node_names[row]}
    for name in removed:
        cluster.apply(Put(cordoned(cluster.nodes.objects[cluster.nodes.row_of[name]])))
    bought = {node.name: offered.find(node) for node in plan.nodes}
    budgets, gangs = _budgets(objects), _gangs(objects)
    labels = {f"default/{o['metadata']['name']}": o["metadata"]["labels"] for o in objects if o["kind"] == "Pod"}
    for number, step in enumerate(plan.steps):
        for name in step.adds:
            if name in bought:  # what was bought for waiting pods has joined already
                planning.join(bought[name], name)
        going = Counter(labels[move.pod]["app"] for move in step.moves)
        for app, most in budgets.items():
            if going[app] > most:
                found.append(f"step {number}: {going[app]} pods of {app}, of which {most} may be disrupted")
        for app, (least, members) in gangs.items():
            if going[app] and going[app] != members and members - going[app] < least:
                found.append(f"step {number}: {going[app]} of {members} members of gang {app} leave, {least} must stay")
        for move in step.moves:
            if cluster.pods.node_names[cluster.pod_row(move.pod)] != move.source:
                found.append(f"step {number}: {move.pod} is not on {move.source}")
            cluster.apply(Unbind(move.pod))
        for move in step.moves:
            ask = planning.engine.evaluator.incoming_pod(cluster.pod_row(move.pod))
            seen = planning.engine.evaluator.filter(ask)
            if not getattr(seen, "feasible", None) is not None or not seen.feasible[cluster.nodes.row_of[move.target]]:
                found.append(f"step {number}: {move.pod} may not go to {move.target}")
            if move.target in removed:
                found.append(f"step {number}: {move.pod} goes to {move.target}, which goes as well")
            cluster.apply(Bind(move.pod, move.target))
        for name in step.removes:
            for row in list(cluster.pods_on_row[cluster.nodes.row_of[name]]):
                key = cluster.pods.keys[row]
                if not key.startswith("kube-system/agent-"):
                    found.append(f"step {number}: {key} is on {name} when it goes")
                cluster.apply(Remove(Pod.KIND, key))
            cluster.apply(Remove(Node.KIND, name))
    for key in before:
        row = cluster.pods.row_of.get(key)
        lost = row is None and not key.startswith("kube-system/agent-")
        if lost or (row is not None and cluster.pods.node[row] < 0):
            found.append(f"{key} has no node at the end")
    found += _money(incoming, plan, cluster)
    return found


def _money(incoming, plan, cluster) -> list[str]:
    prices = {member.node: member.price for pool in incoming.catalogue.pools for member in pool.members}
    now = sum(price for price in prices.values())
    then = sum(prices[name] for name in prices if name in cluster.nodes.row_of) + sum(n.price for n in plan.nodes)
    wrong = []
    if (plan.before, plan.after, plan.saving) != (now, then, now - then):
        wrong.append(f"the bill goes from {now} to {then}, not from {plan.before} to {plan.after}")
    for pool in incoming.catalogue.pools:
        there = sum(member.node in cluster.nodes.row_of for member in pool.members)
        there += sum(node.pool == pool.name for node in plan.nodes)
        if there < min(pool.minimum, len(pool.members)):
            wrong.append(f"pool {pool.name} has {there} nodes, {pool.minimum} at least")
    return wrong


def _budgets(objects: list[Document]) -> dict[str, int]:
    found = {}
    for each in objects:
        if each["kind"] != "PodDisruptionBudget":
            continue
        app, spec, status = each["metadata"]["name"], each["spec"], each.get("status", {})
        members = sum(o["kind"] == "Pod" and o["metadata"]["labels"].get("app") == app for o in objects)
        if "disruptionsAllowed" in status:
            found[app] = status["disruptionsAllowed"]
        elif spec.get("minAvailable") == "50%":
            found[app] = members // 2
        elif "minAvailable" in spec:
            found[app] = members - 1
        else:
            found[app] = 1
    return found


def _gangs(objects: list[Document]) -> dict[str, tuple[int, int]]:
    found = {}
    for each in objects:
        if each["kind"] == "PodGroup":
            app = each["metadata"]["name"]
            members = sum(
                o["kind"] == "Pod" and o["metadata"]["labels"].get(COSCHEDULING_LABEL) == app for o in objects
            )
            found[app] = each["spec"]["minMember"], members
    return found
