"""Random clusters full of gangs, from a seed: several dialects side by side, some of them running, some in trouble.

A world is small enough that whatever goes wrong in it can be read. Everything that runs has its own start time, and
every pod one container, so that order decides nothing and usage can be added up by hand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from tutti.kube import objects as k
from tutti.kube.gangs import tutti_annotations as additions
from tutti.kube.gangs.coscheduling import LABEL
from tutti.kube.objects import (
    CompositePodGroup,
    CoschedulingPodGroup,
    CoschedulingSpec,
    GangPolicy,
    GroupSpec,
    KaiPodGroup,
    KaiSpec,
    KaiSubGroup,
    KaiTopology,
    Object,
    ObjectMeta,
    PodGroup,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
    VolcanoPodGroup,
    VolcanoSpec,
)

HOSTNAME, ZONE, RACK, GPU = "kubernetes.io/hostname", "zone", "rack", "example.com/gpu"
DIALECTS = ("annotation", "coscheduling", "native", "composite", "fluence", "volcano", "kueue", "kai")
WITH_PARTS = ("annotation", "coscheduling", "composite", "volcano", "kai")
LOW, HIGH = (0, 0, 0, 10, 100), (0, 10, 10, 100, 100)
"""Priorities of what runs and of what waits."""
GONE = "2026-01-02T00:00:00Z"

Amounts = tuple[int, int, int]
"""Millicores, mebibytes, devices."""


@dataclass
class Sketch:
    """A gang as it is drawn, before it is written down in a dialect."""

    name: str
    dialect: str
    size: int
    minimum: int
    priority: int = 0
    never: bool = False
    """Whether it may evict nobody."""
    required: str | None = None
    preferred: str | None = None
    disruption: str | None = None
    parts: list[tuple[str, int, str | None]] = field(default_factory=list)
    """Name, minimum and required label."""
    parts_needed: int | None = None
    missing: bool = False
    """Whether its group is not there."""
    asks: list[Amounts] = field(default_factory=list)
    rules: dict[str, object] = field(default_factory=dict)
    """What the pods ask of each other, as fields of their spec."""
    created: str = ""


class GangWorld:
    """The objects of a seed."""

    def __init__(self, seed: int | str, *, gangs: bool = True) -> None:
        self.draw = random.Random(f"gangs {seed}")
        self._made = 0
        self._leaving = 0.06 if self.draw.random() < 0.4 else 0.0
        self.nodes = list(self._nodes())
        self.left = {node.metadata.name: list(room_of(node)) for node in self.nodes}
        self.sketches: list[Sketch] = []
        self.groups: list[Object] = []
        self.pods: list[k.Pod] = []
        if gangs:
            self._fill()
        self.budgets = list(self._budgets())

    @property
    def objects(self) -> list[Object]:
        """Everything, in the order in which it was made."""
        return [*self.nodes, *self.budgets, *self.groups, *self.pods]

    def _fill(self) -> None:
        draw = self.draw
        for number in range(draw.randrange(1, 5)):
            self.add(self.sketch(f"old-{number}", LOW), running=True)
        for number in range(draw.randrange(0, 16)):
            self._solo(f"run-{number}", running=True)
        for number in range(draw.randrange(1, 5)):
            self.add(self.sketch(f"new-{number}", HIGH), running=draw.random() < 0.15)
        for number in range(draw.randrange(0, 4)):
            self._solo(f"wait-{number}", running=False)

    # Nodes and budgets ------------------------------------------------------------------------------------------------

    def _nodes(self) -> Iterator[k.Node]:
        draw = self.draw
        racks = draw.choice((1, 2, 3, 4))
        for number in range(draw.choice((3, 4, 5, 6, 7, 8, 10, 12))):
            name, rack = f"node-{number:02}", number % racks
            labels = {HOSTNAME: name, ZONE: f"zone-{rack // 2}", RACK: f"rack-{rack}"}
            if draw.random() < 0.07:
                del labels[draw.choice((ZONE, RACK))]
            yield self._node(name, labels)

    def _node(self, name: str, labels: dict[str, str]) -> k.Node:
        draw = self.draw
        size = {
            "cpu": str(draw.choice((4, 4, 4, 8, 8, 16))),
            "memory": f"{draw.choice((8, 16, 32))}Gi",
            "pods": str(draw.choice((3, 5, 110, 110, 110))),
        }
        if draw.random() < 0.3:
            size[GPU] = str(draw.choice((2, 4)))
        effect = draw.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule"))
        taints = [k.Taint(key="dedicated", value="ml", effect=effect)] if draw.random() < 0.15 else None
        return k.Node(
            metadata=ObjectMeta(name=name, labels=labels),
            spec=k.NodeSpec(taints=taints, unschedulable=draw.random() < 0.05 or None),
            status=k.NodeStatus(allocatable=size),
        )

    def _budgets(self) -> Iterator[k.PodDisruptionBudget]:
        draw = self.draw
        for app in "ab":
            if draw.random() < 0.3:
                yield k.PodDisruptionBudget(
                    metadata=ObjectMeta(name=f"budget-{app}", namespace="default"),
                    spec=k.BudgetSpec(selector=k.LabelSelector(match_labels={"app": app})),
                    status=k.BudgetStatus(disruptions_allowed=draw.randrange(3)),
                )

    # Pods -------------------------------------------------------------------------------------------------------------

    def _ask(self) -> Amounts:
        draw = self.draw
        gpu = draw.choice((1, 2)) if draw.random() < 0.12 else 0
        return draw.choice((500, 1000, 1000, 2000, 2000, 3000, 4000)), draw.choice((512, 1024, 2048, 4096)), gpu

    def _stamp(self) -> str:
        """A time that no other pod has."""
        self._made += 1
        return f"2026-01-01T{self._made // 60 % 24:02}:{self._made % 60:02}:00Z"

    def _solo(self, name: str, *, running: bool) -> None:
        draw = self.draw
        ask = self._ask()
        node = self._room(ask, None) if running else None
        never = "Never" if draw.random() < 0.1 else None
        rules = self._rules("solo") if draw.random() < 0.2 else {}
        rules = {**rules, "preemption_policy": never}
        self._pod(name, ask, draw.choice(LOW if running else HIGH), node, labels={"gang": "solo"}, rules=rules)

    def _pod(
        self,
        name: str,
        ask: Amounts,
        priority: int,
        node: str | None,
        *,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        rules: dict[str, object] | None = None,
    ) -> None:
        draw = self.draw
        cpu, memory, gpu = ask
        requests: k.Quantities = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
        if gpu:
            requests[GPU] = str(gpu)
        leaving = draw.random() < (self._leaving if node else self._leaving / 3)
        gated = node is None and draw.random() < 0.04
        meta = ObjectMeta(
            name=name, namespace="default", uid=name, creation_timestamp=self._stamp(),
            labels={"app": draw.choice("abc"), **(labels or {})}, annotations=annotations or None,
            deletion_timestamp=GONE if leaving else None,
        )  # fmt: skip
        spec = k.PodSpec(
            containers=[k.Container(name="main", resources=k.ResourceRequirements(requests=requests))],
            node_name=node,
            priority=priority,
            tolerations=[k.Toleration(key="dedicated", operator="Exists")] if draw.random() < 0.4 else None,
            scheduling_gates=[k.SchedulingGate(name="wait")] if gated else None,
            **(rules or {}),
        )
        status = k.PodStatus(phase="Running", start_time=self._stamp()) if node else k.PodStatus(phase="Pending")
        self.pods.append(k.Pod(metadata=meta, spec=spec, status=status))

    def _room(self, ask: Amounts, area: set[str] | None) -> str | None:
        """A node with room; now and then one without any, for requests may change and nodes shrink."""
        draw = self.draw
        names = [name for name in self.left if area is None or name in area]
        fits = [name for name in names if all(a <= r for a, r in zip((*ask, 1), self.left[name], strict=True))]
        if not fits:
            return None
        chosen = draw.choice(names) if draw.random() < 0.01 else draw.choice(fits)
        self.left[chosen] = [r - a for a, r in zip((*ask, 1), self.left[chosen], strict=True)]
        return chosen

    # Gangs ------------------------------------------------------------------------------------------------------------

    def sketch(self, name: str, priorities: Sequence[int] = HIGH) -> Sketch:
        """Draw a gang."""
        draw = self.draw
        dialect = draw.choice(DIALECTS)
        size = draw.randrange(1, 7)
        made = Sketch(name, dialect, size, size, draw.choice(priorities), never=draw.random() < 0.1)
        if dialect != "kueue" and draw.random() < 0.4:
            made.minimum = draw.randrange(1, size + 1)
        if draw.random() < 0.1:
            made.minimum += draw.choice((1, 2))
        if draw.random() < 0.3:
            made.required = draw.choice((ZONE, RACK, RACK, HOSTNAME))
        if draw.random() < 0.2 and dialect not in ("native", "composite"):
            made.preferred = draw.choice((ZONE, RACK))
        if draw.random() < 0.5:
            made.disruption = draw.choice(("single", "whole", "all"))
        if dialect == "composite" or (dialect in WITH_PARTS and draw.random() < 0.5):
            self._draw_parts(made)
        made.missing = draw.random() < 0.05 and dialect not in ("annotation", "fluence", "kueue")
        made.asks = [self._ask() for _ in range(draw.choice((1, 1, 2)))]
        made.rules = self._rules(name) if draw.random() < 0.3 else {}
        made.created = self._stamp()
        return made

    def _draw_parts(self, made: Sketch) -> None:
        draw = self.draw
        names = ["a", "b", "c"][: draw.randrange(1, min(made.size, 3) + 1)]
        share = max(made.size // len(names), 1)
        nearness = made.dialect in ("annotation", "coscheduling", "composite", "kai")
        for name in names:
            label = draw.choice((RACK, HOSTNAME)) if nearness and draw.random() < 0.3 else None
            made.parts.append((name, draw.randrange(0, share + 1), label))
        if made.dialect == "composite":
            made.parts = [(name, max(least, 1), label) for name, least, label in made.parts]
        if made.dialect in ("composite", "kai") and draw.random() < 0.4:
            made.parts_needed = draw.randrange(1, len(names) + 1)

    def _rules(self, name: str) -> dict[str, object]:
        """What pods of one name ask of each other."""
        draw = self.draw
        own = k.LabelSelector(match_labels={"gang": name})
        term = k.PodAffinityTerm(label_selector=own, topology_key=draw.choice((HOSTNAME, ZONE, RACK)))
        match draw.randrange(3):
            case 0:
                return {"affinity": k.Affinity(pod_anti_affinity=k.PodAffinity(required=[term]))}
            case 1:
                return {"affinity": k.Affinity(pod_affinity=k.PodAffinity(required=[term]))}
            case _:
                spread = k.TopologySpreadConstraint(
                    max_skew=draw.randrange(1, 3), topology_key=term.topology_key, label_selector=own,
                    when_unsatisfiable=draw.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
                )  # fmt: skip
                return {"topology_spread_constraints": [spread]}

    def add(self, made: Sketch, *, running: bool) -> None:
        """Write a gang down, with its pods; of one that runs, mostly as many as it needs run."""
        draw = self.draw
        self.sketches.append(made)
        if not made.missing:
            self.groups += written(made)
        count = made.size if draw.random() < 0.7 else draw.randrange(0, made.size + 1)
        area = self._area(made.required) if draw.random() < 0.9 else None
        areas = {name: self._area(label, area) for name, _, label in made.parts}
        for number in range(made.size):
            part = made.parts[number % len(made.parts)][0] if made.parts else ""
            if made.parts and made.dialect != "composite" and draw.random() < 0.1:
                part = ""
            ask = draw.choice(made.asks)
            node = self._room(ask, areas.get(part, area)) if running and number < count else None
            labels, annotations, fields = named(made, part)
            mixed = made.dialect not in ("native", "composite") and draw.random() < 0.05
            self._pod(
                f"{made.name}-{number}", ask, draw.choice(LOW) if mixed else made.priority, node,
                labels={"gang": made.name, **labels}, annotations=annotations,
                rules={**made.rules, **fields, "preemption_policy": "Never" if made.never else None},
            )  # fmt: skip

    def _area(self, label: str | None, within: set[str] | None = None) -> set[str] | None:
        """The names of the nodes of one value of a label."""
        if label is None:
            return within
        nodes = [node for node in self.nodes if within is None or node.metadata.name in within]
        values = sorted({v for node in nodes if (v := (node.metadata.labels or {}).get(label)) is not None})
        chosen = self.draw.choice(values) if values else ""
        return {node.metadata.name for node in nodes if (node.metadata.labels or {}).get(label) == chosen}


# Writing a gang down --------------------------------------------------------------------------------------------------


def said(made: Sketch, *, minimum: bool = False) -> dict[str, str]:
    """What a gang says in Tutti's own annotations."""
    texts = {}
    if minimum and made.minimum != made.size:
        texts[additions.MIN_MEMBER] = str(made.minimum)
    if made.required:
        texts[additions.REQUIRED] = made.required
    if made.preferred:
        texts[additions.PREFERRED] = made.preferred
    if made.disruption:
        texts[additions.DISRUPTION] = made.disruption
    if made.parts:
        parts = [
            {"name": name, "minMember": least, "topology": {"required": label} if label else {}}
            for name, least, label in made.parts
        ]
        texts[additions.SUB_GROUPS] = msgspec.json.encode(parts).decode()
    return texts


def named(made: Sketch, part: str) -> tuple[dict[str, str], dict[str, str], dict[str, object]]:
    """How a pod says of which gang it is: labels, annotations, and fields of its spec."""
    sub = {additions.SUB_GROUP: part} if part else {}
    match made.dialect:
        case "annotation":
            return sub, {"pod-group": made.name, **said(made, minimum=True)}, {}
        case "coscheduling":
            return {LABEL: made.name, **sub}, {}, {}
        case "native":
            return {}, {}, {"scheduling_group": k.SchedulingGroup(pod_group_name=made.name)}
        case "composite":
            return {}, {}, {"scheduling_group": k.SchedulingGroup(pod_group_name=f"{made.name}-{part}")}
        case "fluence":
            return {"fluence.group": made.name, "fluence.group-size": str(made.minimum)}, said(made), {}
        case "volcano":
            task = {"volcano.sh/task-spec": part} if part else {}
            return {}, {"scheduling.k8s.io/group-name": made.name, **task}, {}
        case "kueue":
            domain = "kueue.x-k8s.io/"
            texts = {f"{domain}pod-group-total-count": str(made.minimum)}
            if made.required:
                texts[f"{domain}podset-required-topology"] = made.required
            if made.preferred:
                texts[f"{domain}podset-preferred-topology"] = made.preferred
            if made.disruption:
                texts[additions.DISRUPTION] = made.disruption
            return {f"{domain}pod-group-name": made.name}, texts, {}
        case _:
            return {"kai.scheduler/subgroup-name": part} if part else {}, {"pod-group-name": made.name}, {}


def written(made: Sketch) -> list[Object]:
    """The objects that describe a gang."""
    texts = said(made)
    match made.dialect:
        case "coscheduling":
            return [CoschedulingPodGroup(metadata=_meta(made, texts), spec=CoschedulingSpec(min_member=made.minimum))]
        case "native":
            return [_native(made)]
        case "composite":
            return list(_composite(made))
        case "volcano":
            texts.pop(additions.SUB_GROUPS, None)
            tasks = {name: least for name, least, _ in made.parts}
            spec = VolcanoSpec(min_member=made.minimum, min_task_member=tasks or None)
            return [VolcanoPodGroup(metadata=_meta(made, texts), spec=spec)]
        case "kai":
            return [_kai(made)]
        case _:
            return []


def _meta(made: Sketch, texts: dict[str, str] | None = None) -> ObjectMeta:
    return ObjectMeta(name=made.name, namespace="default", annotations=texts or None, creation_timestamp=made.created)


def _near(label: str | None) -> SchedulingConstraints | None:
    return SchedulingConstraints(topology=[TopologyConstraint(key=label)]) if label else None


def _whole_or_not(made: Sketch) -> tuple[dict[str, object] | None, dict[str, str]]:
    """Kubernetes' own word for how a gang may be evicted, and Tutti's where it has none."""
    if made.disruption == "whole":
        return None, {additions.DISRUPTION: "whole"}
    return ({made.disruption: {}} if made.disruption else None), {}


def _native(made: Sketch) -> PodGroup:
    mode, texts = _whole_or_not(made)
    spec = GroupSpec(
        scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=made.minimum)),
        scheduling_constraints=_near(made.required), disruption_mode=mode, priority=made.priority,
        preemption_policy="Never" if made.never else None,
    )  # fmt: skip
    return PodGroup(metadata=_meta(made, texts), spec=spec)


def _composite(made: Sketch) -> Iterator[Object]:
    mode, texts = _whole_or_not(made)
    groups = len(made.parts) if made.parts_needed is None else made.parts_needed
    above = GroupSpec(
        scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_group_count=groups)),
        scheduling_constraints=_near(made.required), disruption_mode=mode, priority=made.priority,
    )  # fmt: skip
    yield CompositePodGroup(metadata=_meta(made, texts), spec=above)
    for name, least, label in made.parts:
        spec = GroupSpec(
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=least)),
            scheduling_constraints=_near(label), parent_composite_pod_group_name=made.name,
        )  # fmt: skip
        yield PodGroup(metadata=ObjectMeta(name=f"{made.name}-{name}", namespace="default"), spec=spec)


def _kai(made: Sketch) -> KaiPodGroup:
    texts = {additions.DISRUPTION: made.disruption} if made.disruption else None
    near = partial(KaiTopology, topology="t")
    parts = [
        KaiSubGroup(
            name=name, min_member=least, topology_constraint=near(required_topology_level=label) if label else None
        )
        for name, least, label in made.parts
    ]
    spec = KaiSpec(
        min_member=made.minimum, min_sub_group=made.parts_needed, sub_groups=parts or None,
        topology_constraint=near(required_topology_level=made.required, preferred_topology_level=made.preferred),
    )  # fmt: skip
    return KaiPodGroup(metadata=_meta(made, texts), spec=spec)


# Adding up by hand ----------------------------------------------------------------------------------------------------

_UNITS = {"m": 1, "Mi": 1, "Gi": 1024}


def room_of(node: k.Node) -> tuple[int, int, int, int]:
    """What a node offers: millicores, mebibytes, devices, pods."""
    offers = node.status.allocatable or {}
    cpu, memory = int(str(offers["cpu"])) * 1000, _mebibytes(str(offers["memory"]))
    return cpu, memory, int(str(offers.get(GPU, 0))), int(str(offers["pods"]))


def taken_by(pod: k.Pod) -> tuple[int, int, int, int]:
    """What a pod takes of a node."""
    (container,) = pod.spec.containers
    asks = (container.resources.requests if container.resources else None) or {}
    cpu, memory = int(str(asks["cpu"]).removesuffix("m")), _mebibytes(str(asks["memory"]))
    return cpu, memory, int(str(asks.get(GPU, 0))), 1


def _mebibytes(text: str) -> int:
    return int(text[:-2]) * _UNITS[text[-2:]]


def shuffled(objects: Sequence[Object], seed: int) -> list[Object]:
    """The same objects in another order."""
    mixed = list(objects)
    random.Random(seed).shuffle(mixed)
    return mixed
