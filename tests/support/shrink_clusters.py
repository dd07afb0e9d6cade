"""Clusters with too many nodes, drawn from a seed, and a replay of what is to be given back that trusts nobody.

The replay reads the objects as they came in, counts budgets and gangs by itself, and asks the engine only one thing:
whether a pod may be bound to the node that the plan names.
"""

from __future__ import annotations

import json
import random
from collections import Counter

from tutti.cluster.edits import Bind, Put, Remove, Unbind
from tutti.cluster.node_edits import cordoned
from tutti.kube.admission.prepare import prepare
from tutti.kube.objects import Node, Pod
from tutti.kube.reading.decode import decode_objects
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.sources import Source
from tutti.recommend.after_purchase import Offered, settle
from tutti.recommend.build_request import build_request
from tutti.recommend.records.request import Options
from tutti.recommend.request_cluster import planning_cluster

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SIZES = {"m5.large": (1930, 7000), "m5.xlarge": (3920, 14600), "m5.2xlarge": (7910, 30000), "c5.xlarge": (3920, 6900)}
"""Allocatable millicores and MiB."""
GROUP = "scheduling.x-k8s.io/pod-group"


def cluster(seed: int, *, nodes: int | None = None) -> tuple[list[dict], dict]:
    """The objects of a cluster as kubectl prints them, and its pools; the same seed gives the same."""
    draw = random.Random(f"shrink/{seed}")
    kinds = draw.sample(sorted(SIZES), draw.randint(1, 3))
    pools = [
        {"name": f"p{number}", "instanceTypes": sorted({kind, *draw.sample(sorted(SIZES), draw.randint(0, 1))}),
         "zones": list(ZONES[: draw.choice((1, 3))]), "min": draw.choice((0, 0, 1, 2)), "max": 20}
        for number, kind in enumerate(kinds)
    ]  # fmt: skip
    objects: list[dict] = []
    rooms: dict[str, list[int]] = {}
    for number in range(nodes or draw.randint(2, 10)):
        pool = draw.choice(pools)
        kind = draw.choice(pool["instanceTypes"])
        name = f"n{number:02d}"
        rooms[name] = list(SIZES[kind])
        objects.append(_node(name, pool["name"], kind, draw.choice(pool["zones"]), draw))
    for number in range(draw.randint(1, 2 + len(rooms))):
        objects += _workload(draw, number, rooms)
    objects += [_daemon(name) for name in rooms]
    return objects, {"region": "us-east-1", "pools": pools}


def _node(name: str, pool: str, kind: str, zone: str, draw: random.Random) -> dict:
    cpu, memory = SIZES[kind]
    room = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "58"}
    marks = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"} if draw.random() < 0.05 else {}
    labels = {
        "kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": kind, "eks.amazonaws.com/nodegroup": pool,
        "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "us-east-1",
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "annotations": marks},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def _workload(draw: random.Random, number: int, rooms: dict[str, list[int]]) -> list[dict]:
    app, made = f"app{number}", []
    cpu, memory = draw.choice((100, 250, 500, 900, 1700)), draw.choice((200, 500, 1500, 3500))
    spec: dict = {}
    draws = draw.random()
    if draws < 0.15:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif draws < 0.3:
        spec["topologySpreadConstraints"] = [
            {"maxSkew": draw.choice((1, 2)), "topologyKey": "topology.kubernetes.io/zone",
             "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": app}}}
        ]  # fmt: skip
    gang = draw.random() < 0.2
    labels = {"app": app} | ({GROUP: app} if gang else {})
    marks, volumes, owner = {}, [], "ReplicaSet"
    odd = draw.random()
    if odd < 0.05:
        marks = {"cluster-autoscaler.kubernetes.io/safe-to-evict": draw.choice(("false", "true"))}
    elif odd < 0.1:
        volumes = [{"name": "scratch", "emptyDir": {}}]
    elif odd < 0.15:
        owner = ""
    for copy in range(draw.randint(1, 6)):
        fits = [name for name, (c, m) in rooms.items() if c >= cpu + 200 and m >= memory + 200]
        if "affinity" in spec:
            fits = [name for name in fits if all(pod["spec"]["nodeName"] != name for pod in made)]
        if not fits:
            break
        node = draw.choice(fits)
        rooms[node][0] -= cpu
        rooms[node][1] -= memory
        made.append(_pod(f"{app}-{copy}", node, labels, marks, owner, app, cpu, memory, spec, volumes))
    if made and gang:
        group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
                 "metadata": {"name": app, "namespace": "default"},
                 "spec": {"minMember": draw.choice((len(made), max(len(made) - 1, 1)))}}  # fmt: skip
        made.append(group)
    if made and draw.random() < 0.4:
        made.append(_budget(draw, app))
    return made


def _pod(name, node, labels, marks, owner, app, cpu, memory, spec, volumes) -> dict:
    refs = [{"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": app, "controller": True}] if owner else []
    box = {"name": "c", "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels, "annotations": marks,
                     "ownerReferences": refs, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": node, "containers": [box], "volumes": volumes, **spec},
        "status": {"phase": "Running"},
    }  # fmt: skip


def _daemon(node: str) -> dict:
    made = _pod(f"agent-{node}", node, {"k8s-app": "agent"}, {}, "DaemonSet", "agent", 50, 64, {}, [])
    made["metadata"]["namespace"] = "kube-system"
    return made


def _budget(draw: random.Random, app: str) -> dict:
    spec: dict = {"selector": {"matchLabels": {"app": app}}}
    status: dict = {}
    if draw.random() < 0.5:
        status = {"disruptionsAllowed": draw.choice((0, 1, 1, 2, 6))}
    else:
        spec |= draw.choice(({"minAvailable": 1}, {"maxUnavailable": 1}, {"minAvailable": "50%"}))
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"}, "spec": spec, "status": status,
    }  # fmt: skip


def request(objects: list[dict], pools: dict, options: Options):
    """The same as a request to the recommender, through the readers that a user's files go through."""
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}).encode()
    decoded = decode_objects(parse_file(Source("cluster.json", text)))
    found = by_kind(decoded.objects)
    snapshot = prepare(Snapshot(objects=found, present=frozenset(found)))
    return build_request(snapshot, pools=Source("pools.json", json.dumps(pools).encode()), options=options)


# Replaying ------------------------------------------------------------------------------------------------------------


def broken(objects: list[dict], asked, answer) -> list[str]:
    """What is wrong with a plan; nothing, it is hoped."""
    plan, found = answer.down, []
    picture = settle(answer, asked).picture if answer.nodes or answer.on_existing else planning_cluster(asked)
    world = picture.cluster
    offered = Offered(asked.catalogue)
    removed = {each.node for each in plan.removals}
    before = {key for key, row in world.pods.row_of.items() if world.pods.node_names[row]}
    for name in removed:
        world.apply(Put(cordoned(world.nodes.objects[world.nodes.row_of[name]])))
    bought = {node.name: offered.of(node) for node in plan.nodes}
    budgets, gangs = _budgets(objects), _gangs(objects)
    labels = {f"default/{o['metadata']['name']}": o["metadata"]["labels"] for o in objects if o["kind"] == "Pod"}
    for number, step in enumerate(plan.steps):
        for name in step.adds:
            if name in bought:  # what was bought for waiting pods has joined already
                picture.join(bought[name], name)
        going = Counter(labels[move.pod]["app"] for move in step.moves)
        for app, most in budgets.items():
            if going[app] > most:
                found.append(f"step {number}: {going[app]} pods of {app}, of which {most} may be disrupted")
        for app, (least, members) in gangs.items():
            if going[app] and going[app] != members and members - going[app] < least:
                found.append(f"step {number}: {going[app]} of {members} members of gang {app} leave, {least} must stay")
        for move in step.moves:
            if world.pods.node_names[world.pod_row(move.pod)] != move.source:
                found.append(f"step {number}: {move.pod} is not on {move.source}")
            world.apply(Unbind(move.pod))
        for move in step.moves:
            ask = picture.engine.judge.ask(world.pod_row(move.pod))
            seen = picture.engine.judge.filter(ask)
            if not getattr(seen, "feasible", None) is not None or not seen.feasible[world.nodes.row_of[move.target]]:
                found.append(f"step {number}: {move.pod} may not go to {move.target}")
            if move.target in removed:
                found.append(f"step {number}: {move.pod} goes to {move.target}, which goes as well")
            world.apply(Bind(move.pod, move.target))
        for name in step.removes:
            for row in list(world.on_node[world.nodes.row_of[name]]):
                key = world.pods.keys[row]
                if not key.startswith("kube-system/agent-"):
                    found.append(f"step {number}: {key} is on {name} when it goes")
                world.apply(Remove(Pod.KIND, key))
            world.apply(Remove(Node.KIND, name))
    for key in before:
        row = world.pods.row_of.get(key)
        lost = row is None and not key.startswith("kube-system/agent-")
        if lost or (row is not None and world.pods.node[row] < 0):
            found.append(f"{key} has no node at the end")
    found += _money(asked, plan, world)
    return found


def _money(asked, plan, world) -> list[str]:
    prices = {member.node: member.price for pool in asked.catalogue.pools for member in pool.members}
    now = sum(price for price in prices.values())
    then = sum(prices[name] for name in prices if name in world.nodes.row_of) + sum(n.price for n in plan.nodes)
    wrong = []
    if (plan.before, plan.after, plan.saving) != (now, then, now - then):
        wrong.append(f"the bill goes from {now} to {then}, not from {plan.before} to {plan.after}")
    for pool in asked.catalogue.pools:
        there = sum(member.node in world.nodes.row_of for member in pool.members)
        there += sum(node.pool == pool.name for node in plan.nodes)
        if there < min(pool.minimum, len(pool.members)):
            wrong.append(f"pool {pool.name} has {there} nodes, {pool.minimum} at least")
    return wrong


def _budgets(objects: list[dict]) -> dict[str, int]:
    found = {}
    for each in objects:
        if each["kind"] != "PodDisruptionBudget":
            continue
        app, spec, status = each["metadata"]["name"], each["spec"], each["status"]
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


def _gangs(objects: list[dict]) -> dict[str, tuple[int, int]]:
    found = {}
    for each in objects:
        if each["kind"] == "PodGroup":
            app = each["metadata"]["name"]
            members = sum(o["kind"] == "Pod" and o["metadata"]["labels"].get(GROUP) == app for o in objects)
            found[app] = each["spec"]["minMember"], members
    return found
