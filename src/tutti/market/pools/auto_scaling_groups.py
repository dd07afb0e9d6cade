"""Cluster Autoscaler's node groups: AWS Auto Scaling groups with their tags.

Contract: pure. The text is what ``aws autoscaling describe-auto-scaling-groups`` prints. One pool for each group, one
offering for each of its zones; its maximum holds over all of them. As in Cluster Autoscaler, a new node is like a ready
one of the group if there is one, else it is made from the instance type and the node-template tags; of several types
of a group the first stands for all. When any group has the tag that enables discovery, only such groups count; a note
names the others. A group of an instance type that nobody knows is left out with a note, unless there is no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tutti.cluster.node_edits import like
from tutti.exceptions import InputError, PoolError
from tutti.kube.durations import duration
from tutti.kube.objects import Node, Quantities, Taint
from tutti.kube.quantity import parse_nano
from tutti.kube.resource_names import is_gpu
from tutti.market.instance_types import INSTANCE_TYPE, REGION, ZONE, in_zone, template_name, template_node
from tutti.market.offerings import DownRules, NodePool, Offering
from tutti.market.pool_context import PoolContext, label_of, unpriced_note
from tutti.market.pool_labels import best_example, is_ready
from tutti.market.pool_limits import nodes_limit
from tutti.market.pool_members import members_of
from tutti.market.price_book import ON_DEMAND, SPOT, region_of

_ENABLED = "k8s.io/cluster-autoscaler/enabled"
_TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"
_TAINT = re.compile(r"(.*):(NoSchedule|NoExecute|PreferNoSchedule)")
_NODE_GROUP = "eks.amazonaws.com/nodegroup"
_CAPACITY_TYPE = "eks.amazonaws.com/capacityType"


class _Tag(msgspec.Struct, rename="pascal"):
    """A tag of a group."""

    key: str
    value: str = ""


class _Override(msgspec.Struct, rename="pascal"):
    """An instance type of a mixed group, or what it must have."""

    instance_type: str | None = None


class _Template(msgspec.Struct, rename="pascal"):
    """The types of a mixed group."""

    overrides: list[_Override] | None = None


class _Distribution(msgspec.Struct, rename="pascal"):
    """How much of a mixed group is bought on demand."""

    on_demand_base_capacity: int | None = None
    on_demand_percentage_above_base_capacity: int | None = None


class _Mixed(msgspec.Struct, rename="pascal"):
    """Several types, and how they are bought."""

    launch_template: _Template | None = None
    instances_distribution: _Distribution | None = None


class _Instance(msgspec.Struct, rename="pascal"):
    """A machine of a group."""

    instance_id: str = ""
    instance_type: str | None = None


class _Group(msgspec.Struct, rename="pascal"):
    """A group."""

    auto_scaling_group_name: str
    min_size: int = 0
    max_size: int = 0
    desired_capacity: int = 0
    availability_zones: list[str] | None = None
    mixed_instances_policy: _Mixed | None = None
    instances: list[_Instance] | None = None
    tags: list[_Tag] | None = None

    def tagged(self) -> dict[str, str]:
        return {tag.key: tag.value for tag in self.tags or ()}


class _UnknownTypeError(PoolError):
    """A group of which nobody knows what its nodes are."""


def read_groups(trees: Sequence[Any], market: PoolContext) -> tuple[list[NodePool], list[str]]:
    """The pools of these groups, and notes about them."""
    groups = sorted((_group(tree) for tree in trees), key=lambda each: each.auto_scaling_group_name)
    enabled = [group for group in groups if _ENABLED in group.tagged()]
    others = [group.auto_scaling_group_name for group in groups if _ENABLED not in group.tagged()]
    pools, notes, unknown = [], [], []
    if enabled and others:
        do = "group does" if len(others) == 1 else "groups do"
        notes.append(f"{len(others)} {do} not count, for want of the tag {_ENABLED}: {', '.join(others)}")
    for group in enabled or groups:
        types = _types(group)
        try:
            pools.append(_pool(group, market))
        except _UnknownTypeError as error:
            unknown.append(error)
            notes.append(f"{error.obj} is left out: {error.problem}")
            continue
        if len(set(types)) > 1:
            notes.append(f"group {group.auto_scaling_group_name}: {types[0]} stands for its {len(set(types))} types")
    if unknown and not pools:
        raise unknown[0]
    missing = (o.instance_type for pool in pools for o in pool.offerings if o.price is None)
    return pools, notes + unpriced_note(missing, region=market.region)


def _group(tree: Any) -> _Group:
    name = str(tree.get("AutoScalingGroupName") or "without a name") if isinstance(tree, dict) else "that is none"
    try:
        group = msgspec.convert(tree, _Group)
    except msgspec.ValidationError as error:
        text = str(error).replace("`", "").replace("Object", "it").replace("$.", "")
        raise InputError(text[:1].lower() + text[1:], obj=f"group {name}") from None
    if not 0 <= group.min_size <= group.max_size:
        problem = f"want 0 <= MinSize <= MaxSize, not {group.min_size} and {group.max_size}"
        raise PoolError(problem, obj=f"group {name}", field="MaxSize")
    return group


def _types(group: _Group) -> list[str]:
    """The instance types of a group; the first is the one that Cluster Autoscaler reckons with."""
    tagged = group.tagged().get(f"{_TEMPLATE}label/{INSTANCE_TYPE}")
    mixed = group.mixed_instances_policy
    overrides = mixed.launch_template.overrides if mixed is not None and mixed.launch_template is not None else None
    named = [each.instance_type for each in overrides or () if each.instance_type]
    there = [each.instance_type for each in group.instances or () if each.instance_type]
    return [tagged] if tagged else named or there[:1]


def _pool(group: _Group, market: PoolContext) -> NodePool:
    name, types = group.auto_scaling_group_name, _types(group)
    ids = {each.instance_id for each in group.instances or () if each.instance_id}
    mine = [node for node in market.nodes if (node.spec.provider_id or "").rpartition("/")[2] in ids]
    examples = [node for node in mine if is_ready(node)]
    if not types and examples:
        types = [label_of(examples[0], INSTANCE_TYPE)]
    if not types:
        tag = f"{_TEMPLATE}label/{INSTANCE_TYPE}"
        raise _UnknownTypeError(f"its instance type is not known: give it in the tag {tag}", obj=f"group {name}")
    kind = _capacity_type(group)
    offerings = []
    for zone in sorted(group.availability_zones or ()) or [""]:
        template = template_name(name, types[0], zone=zone, capacity_type=kind)
        there = [node for node in examples if label_of(node, ZONE) == zone]
        if examples:
            node = like(in_zone(best_example(there or examples), zone), template)
        else:
            node = _made(group, template, zone=zone, instance_type=types[0], market=market)
        price = market.price(types[0], zone=zone, capacity_type=kind)
        offerings.append(
            Offering(pool=name, instance_type=types[0], zone=zone, capacity_type=kind, price=price, node=node)
        )
    return NodePool(
        name=name,
        offerings=tuple(offerings),
        limits=(nodes_limit(f"group {name}", group.max_size, current=group.desired_capacity),),
        current=group.desired_capacity,
        minimum=group.min_size,
        maximum=group.max_size,
        members=members_of(mine, offerings, market),
        down_rules=_down_rules(group),
    )


def _down_rules(group: _Group) -> DownRules:
    """What the group's tags say about scale-down; they stand before Cluster Autoscaler's flags."""
    tags = dict(_under(group.tagged(), "autoscaling-options/"))
    gpu = any(is_gpu(resource) for resource, _ in _under(group.tagged(), "resources/"))
    threshold = tags.get("scaledowngpuutilizationthreshold" if gpu else "scaledownutilizationthreshold")
    unneeded = tags.get("scaledownunneededtime")
    try:
        return DownRules(
            threshold=float(threshold) if threshold else None,
            unneeded=duration(unneeded) // 1_000_000 if unneeded else None,
        )
    except (ValueError, InputError) as error:
        who, tag = f"group {group.auto_scaling_group_name}", f"tag {_TEMPLATE}autoscaling-options/"
        raise InputError(str(error), obj=who, field=tag) from None


def _capacity_type(group: _Group) -> str:
    """Spot where nothing of a group is bought on demand."""
    mixed = group.mixed_instances_policy
    shares = mixed.instances_distribution if mixed is not None else None
    if shares is None or shares.on_demand_percentage_above_base_capacity is None:
        return ON_DEMAND
    all_spot = shares.on_demand_percentage_above_base_capacity == 0 and not shares.on_demand_base_capacity
    return SPOT if all_spot else ON_DEMAND


def _made(group: _Group, template: str, *, zone: str, instance_type: str, market: PoolContext) -> Node:
    """A node from the group's tags, as Cluster Autoscaler makes it up for an empty group."""
    who, tags = f"group {group.auto_scaling_group_name}", group.tagged()
    machine = market.machine(instance_type)
    if machine is None:
        problem = f"the size of instance type {instance_type} is not known: give it with --prices"
        raise _UnknownTypeError(problem, obj=who)
    more = _resources(tags, who)
    labels = machine.labels | {INSTANCE_TYPE: instance_type}
    if zone:
        labels |= {ZONE: zone, REGION: region_of(zone) or market.region}
    if group_name := tags.get("eks:nodegroup-name"):
        bought = "SPOT" if _capacity_type(group) == SPOT else "ON_DEMAND"
        labels |= {_NODE_GROUP: group_name, _CAPACITY_TYPE: bought}
    labels |= dict(_under(tags, "label/"))
    return template_node(
        template,
        labels=labels,
        taints=_taints(tags, who),
        capacity=machine.capacity | more,
        allocatable=machine.allocatable | more,
    )


def _under(tags: Mapping[str, str], folder: str) -> list[tuple[str, str]]:
    start = _TEMPLATE + folder
    return [(key.removeprefix(start), value) for key, value in tags.items() if key.startswith(start)]


def _taints(tags: Mapping[str, str], who: str) -> list[Taint]:
    taints = []
    for key, text in _under(tags, "taint/"):
        parts = _TAINT.fullmatch(text)
        if parts is None:
            raise InputError(f'"{text}" is not value:Effect', obj=who, field=f"tag {_TEMPLATE}taint/{key}")
        taints.append(Taint(key=key, value=parts[1] or None, effect=parts[2]))
    return taints


def _resources(tags: Mapping[str, str], who: str) -> Quantities:
    found: Quantities = {}
    for resource, text in _under(tags, "resources/"):
        try:
            parse_nano(text)
        except InputError as error:
            raise InputError(error.problem, obj=who, field=f"tag {_TEMPLATE}resources/{resource}") from None
        found[resource] = text
    return found
