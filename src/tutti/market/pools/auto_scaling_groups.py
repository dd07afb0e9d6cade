"""Node groups of Cluster Autoscaler: AWS Auto Scaling groups with their tags.

Contract: pure. The text is the output of ``aws autoscaling describe-auto-scaling-groups``. Each group is one pool, with
one offering per zone; its maximum applies to all zones together. As in Cluster Autoscaler, a new node copies a ready
node of the group; without one it is made from the instance type and the node-template tags. Of several types of a group
the first one counts. If any group has the tag that enables discovery, only groups with this tag count; a note names the
others. A group of an unknown instance type is left out with a note, unless all groups are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tutti.cluster.node_edits import new_node_like
from tutti.exceptions import InputError, PoolError
from tutti.kube.durations import parse_duration
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
    """An instance type of a mixed group, or its requirements."""

    instance_type: str | None = None


class _Template(msgspec.Struct, rename="pascal"):
    """The types of a mixed group."""

    overrides: list[_Override] | None = None


class _Distribution(msgspec.Struct, rename="pascal"):
    """The share of a mixed group that is bought on demand."""

    on_demand_base_capacity: int | None = None
    on_demand_percentage_above_base_capacity: int | None = None


class _Mixed(msgspec.Struct, rename="pascal"):
    """The instance types of a mixed group, and their distribution."""

    launch_template: _Template | None = None
    instances_distribution: _Distribution | None = None


class _Instance(msgspec.Struct, rename="pascal"):
    """An instance of a group."""

    instance_id: str = ""
    instance_type: str | None = None


class _Group(msgspec.Struct, rename="pascal"):
    """An Auto Scaling group."""

    auto_scaling_group_name: str
    min_size: int = 0
    max_size: int = 0
    desired_capacity: int = 0
    availability_zones: list[str] | None = None
    mixed_instances_policy: _Mixed | None = None
    instances: list[_Instance] | None = None
    tags: list[_Tag] | None = None

    def tag_values(self) -> dict[str, str]:
        return {tag.key: tag.value for tag in self.tags or ()}


class _UnknownTypeError(PoolError):
    """The instance type of a group is unknown."""


def read_groups(trees: Sequence[Any], market: PoolContext) -> tuple[list[NodePool], list[str]]:
    """Return the pools of these groups, and notes about them."""
    groups = sorted((_group(tree) for tree in trees), key=lambda each: each.auto_scaling_group_name)
    enabled = [group for group in groups if _ENABLED in group.tag_values()]
    disabled = [group.auto_scaling_group_name for group in groups if _ENABLED not in group.tag_values()]
    pools, notes, unknown = [], [], []
    if enabled and disabled:
        subject = "group is ignored because it lacks" if len(disabled) == 1 else "groups are ignored because they lack"
        notes.append(f"{len(disabled)} {subject} the tag {_ENABLED}: {', '.join(disabled)}")
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
    """Return the instance types of a group; Cluster Autoscaler uses the first one."""
    tag_values = group.tag_values().get(f"{_TEMPLATE}label/{INSTANCE_TYPE}")
    mixed = group.mixed_instances_policy
    overrides = mixed.launch_template.overrides if mixed is not None and mixed.launch_template is not None else None
    override_types = [each.instance_type for each in overrides or () if each.instance_type]
    instance_types = [each.instance_type for each in group.instances or () if each.instance_type]
    return [tag_values] if tag_values else override_types or instance_types[:1]


def _pool(group: _Group, market: PoolContext) -> NodePool:
    name, types = group.auto_scaling_group_name, _types(group)
    ids = {each.instance_id for each in group.instances or () if each.instance_id}
    existing = [node for node in market.nodes if (node.spec.provider_id or "").rpartition("/")[2] in ids]
    examples = [node for node in existing if is_ready(node)]
    if not types and examples:
        types = [label_of(examples[0], INSTANCE_TYPE)]
    if not types:
        tag = f"{_TEMPLATE}label/{INSTANCE_TYPE}"
        raise _UnknownTypeError(f"its instance type is not known: give it in the tag {tag}", obj=f"group {name}")
    capacity_type = _capacity_type(group)
    offerings = []
    for zone in sorted(group.availability_zones or ()) or [""]:
        template = template_name(name, types[0], zone=zone, capacity_type=capacity_type)
        zone_examples = [node for node in examples if label_of(node, ZONE) == zone]
        if examples:
            node = new_node_like(in_zone(best_example(zone_examples or examples), zone), template)
        else:
            node = _node_from_tags(group, template, zone=zone, instance_type=types[0], market=market)
        price = market.price(types[0], zone=zone, capacity_type=capacity_type)
        offerings.append(
            Offering(pool=name, instance_type=types[0], zone=zone, capacity_type=capacity_type, price=price, node=node)
        )
    return NodePool(
        name=name,
        offerings=tuple(offerings),
        limits=(nodes_limit(f"group {name}", group.max_size, current=group.desired_capacity),),
        current=group.desired_capacity,
        minimum=group.min_size,
        maximum=group.max_size,
        members=members_of(existing, offerings, market),
        down_rules=_down_rules(group),
    )


def _down_rules(group: _Group) -> DownRules:
    """Return the scale-down rules in the group's tags; they take precedence over Cluster Autoscaler's flags."""
    tags = dict(_tags_with_prefix(group.tag_values(), "autoscaling-options/"))
    gpu = any(is_gpu(resource) for resource, _ in _tags_with_prefix(group.tag_values(), "resources/"))
    threshold = tags.get("scaledowngpuutilizationthreshold" if gpu else "scaledownutilizationthreshold")
    unneeded = tags.get("scaledownunneededtime")
    try:
        return DownRules(
            threshold=float(threshold) if threshold else None,
            unneeded=parse_duration(unneeded) // 1_000_000 if unneeded else None,
        )
    except (ValueError, InputError) as error:
        group_text, tag = f"group {group.auto_scaling_group_name}", f"tag {_TEMPLATE}autoscaling-options/"
        raise InputError(str(error), obj=group_text, field=tag) from None


def _capacity_type(group: _Group) -> str:
    """Return the capacity type of a group: spot if no instance is bought on demand."""
    mixed = group.mixed_instances_policy
    shares = mixed.instances_distribution if mixed is not None else None
    if shares is None or shares.on_demand_percentage_above_base_capacity is None:
        return ON_DEMAND
    all_spot = shares.on_demand_percentage_above_base_capacity == 0 and not shares.on_demand_base_capacity
    return SPOT if all_spot else ON_DEMAND


def _node_from_tags(group: _Group, template: str, *, zone: str, instance_type: str, market: PoolContext) -> Node:
    """Return a node made from the group's tags, as Cluster Autoscaler does for an empty group."""
    group_text, tags = f"group {group.auto_scaling_group_name}", group.tag_values()
    machine = market.machine(instance_type)
    if machine is None:
        problem = f"the size of instance type {instance_type} is not known: give it with --prices"
        raise _UnknownTypeError(problem, obj=group_text)
    tag_resources = _resources(tags, group_text)
    labels = machine.labels | {INSTANCE_TYPE: instance_type}
    if zone:
        labels |= {ZONE: zone, REGION: region_of(zone) or market.region}
    if group_name := tags.get("eks:nodegroup-name"):
        bought = "SPOT" if _capacity_type(group) == SPOT else "ON_DEMAND"
        labels |= {_NODE_GROUP: group_name, _CAPACITY_TYPE: bought}
    labels |= dict(_tags_with_prefix(tags, "label/"))
    return template_node(
        template,
        labels=labels,
        taints=_taints(tags, group_text),
        capacity=machine.capacity | tag_resources,
        allocatable=machine.allocatable | tag_resources,
    )


def _tags_with_prefix(tags: Mapping[str, str], folder: str) -> list[tuple[str, str]]:
    start = _TEMPLATE + folder
    return [(key.removeprefix(start), value) for key, value in tags.items() if key.startswith(start)]


def _taints(tags: Mapping[str, str], group_text: str) -> list[Taint]:
    taints = []
    for key, text in _tags_with_prefix(tags, "taint/"):
        parts = _TAINT.fullmatch(text)
        if parts is None:
            raise InputError(f'"{text}" is not value:Effect', obj=group_text, field=f"tag {_TEMPLATE}taint/{key}")
        taints.append(Taint(key=key, value=parts[1] or None, effect=parts[2]))
    return taints


def _resources(tags: Mapping[str, str], group_text: str) -> Quantities:
    found: Quantities = {}
    for resource, text in _tags_with_prefix(tags, "resources/"):
        try:
            parse_nano(text)
        except InputError as error:
            raise InputError(error.problem, obj=group_text, field=f"tag {_TEMPLATE}resources/{resource}") from None
        found[resource] = text
    return found
