"""Random clusters full of gangs, from a seed: several dialects side by side, some of them running, some in trouble.

A cluster is small enough that a person can read what went wrong. Every running pod has a start time of its own, and
every pod one container, so that ties decide nothing and usage can be added up by hand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.support import builders
from tests.support.builders import GPU, HOSTNAME
from tests.support.gang_dialects import DIALECTS, WITH_PARTS, Amounts, DrawnGang, group_objects, membership_of
from tutti.kube import objects as k
from tutti.kube.objects import Object

ZONE, RACK = "zone", "rack"
LOW, HIGH = (0, 0, 0, 10, 100), (0, 10, 10, 100, 100)
"""Priorities of pods that run and of pods that wait."""
GONE = "2026-01-02T00:00:00Z"


class RandomGangCluster:
    """The objects of a cluster; the same seed draws the same ones."""

    def __init__(self, seed: int | str, *, gangs: bool = True) -> None:
        self.draw = random.Random(f"gangs {seed}")
        self._made = 0
        self._leaving = 0.06 if self.draw.random() < 0.4 else 0.0
        self.nodes = list(self._nodes())
        self.left = {node.metadata.name: list(node_amounts(node)) for node in self.nodes}
        self.gangs: list[DrawnGang] = []
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
            self.add(self.draw_gang(f"old-{number}", LOW), running=True)
        for number in range(draw.randrange(0, 16)):
            self._solo(f"run-{number}", running=True)
        for number in range(draw.randrange(1, 5)):
            self.add(self.draw_gang(f"new-{number}", HIGH), running=draw.random() < 0.15)
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
            yield self._draw_node(name, labels)

    def _draw_node(self, name: str, labels: dict[str, str]) -> k.Node:
        draw = self.draw
        size = {
            "cpu": str(draw.choice((4, 4, 4, 8, 8, 16))),
            "memory": f"{draw.choice((8, 16, 32))}Gi",
            "pods": str(draw.choice((3, 5, 110, 110, 110))),
            "gpu": draw.choice((2, 4)) if draw.random() < 0.3 else 0,
        }
        effect = draw.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule"))
        taints = [k.Taint(key="dedicated", value="ml", effect=effect)] if draw.random() < 0.15 else None
        return builders.node(name, **size, labels=labels, taints=taints, unschedulable=draw.random() < 0.05 or None)

    def _budgets(self) -> Iterator[k.PodDisruptionBudget]:
        draw = self.draw
        for app in "ab":
            if draw.random() < 0.3:
                yield builders.disruption_budget(app, draw.randrange(3), name=f"budget-{app}")

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
        self._add_pod(name, ask, draw.choice(LOW if running else HIGH), node, labels={"gang": "solo"}, rules=rules)

    def _add_pod(
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
        leaving = draw.random() < (self._leaving if node else self._leaving / 3)
        gated = node is None and draw.random() < 0.04
        made = builders.pod(
            name, f"{cpu}m", memory=f"{memory}Mi", gpu=gpu, on=node, priority=priority, created=self._stamp(),
            app=draw.choice("abc"), labels=labels, annotations=annotations, deleted=GONE if leaving else None,
            tolerates="dedicated" if draw.random() < 0.4 else None,
            scheduling_gates=[k.SchedulingGate(name="wait")] if gated else None,
            started=self._stamp() if node else None,
            **(rules or {}),
        )  # fmt: skip
        self.pods.append(made)

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

    def draw_gang(self, name: str, priorities: Sequence[int] = HIGH) -> DrawnGang:
        """Draw a gang."""
        draw = self.draw
        dialect = draw.choice(DIALECTS)
        size = draw.randrange(1, 7)
        made = DrawnGang(name, dialect, size, size, draw.choice(priorities), never=draw.random() < 0.1)
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

    def _draw_parts(self, made: DrawnGang) -> None:
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

    def add(self, made: DrawnGang, *, running: bool) -> None:
        """Add the objects and pods of a gang; of a running gang, mostly as many pods run as it needs."""
        draw = self.draw
        self.gangs.append(made)
        if not made.missing:
            self.groups += group_objects(made)
        count = made.size if draw.random() < 0.7 else draw.randrange(0, made.size + 1)
        area = self._area(made.required) if draw.random() < 0.9 else None
        areas = {name: self._area(label, area) for name, _, label in made.parts}
        for number in range(made.size):
            part = made.parts[number % len(made.parts)][0] if made.parts else ""
            if made.parts and made.dialect != "composite" and draw.random() < 0.1:
                part = ""
            ask = draw.choice(made.asks)
            node = self._room(ask, areas.get(part, area)) if running and number < count else None
            labels, annotations, fields = membership_of(made, part)
            mixed = made.dialect not in ("native", "composite") and draw.random() < 0.05
            self._add_pod(
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


# Adding up by hand ----------------------------------------------------------------------------------------------------

_UNITS = {"m": 1, "Mi": 1, "Gi": 1024}


def node_amounts(node: k.Node) -> tuple[int, int, int, int]:
    """What a node offers: millicores, MiB, GPUs, pods."""
    offers = node.status.allocatable or {}
    cpu, memory = int(str(offers["cpu"])) * 1000, _mebibytes(str(offers["memory"]))
    return cpu, memory, int(str(offers.get(GPU, 0))), int(str(offers["pods"]))


def pod_amounts(pod: k.Pod) -> tuple[int, int, int, int]:
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
