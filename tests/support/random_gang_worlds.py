"""Random clusters with everything that a gang can meet, from a seed: more trouble than `RandomGangCluster` draws.

A world adds maximums, finished members, nominated pods, invalid minimums, pods of other schedulers, gangs that no
cluster could hold, and pods without creation times. Its pods are those of `RandomGangCluster`, so that usage can be
added up by hand.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from tests.support.builders import owner_reference
from tests.support.gang_dialects import DrawnGang
from tests.support.random_gang_clusters import RandomGangCluster
from tutti.kube import objects as k
from tutti.kube.gangs import tutti_annotations as additions
from tutti.kube.objects import Object

OTHER_SCHEDULER = "another-scheduler"


class RandomGangWorld:
    """The objects of a world; the same seed draws the same ones."""

    def __init__(self, seed: int | str) -> None:
        self._draw = random.Random(f"world {seed}")
        base = RandomGangCluster(f"world {seed}")
        self._nodes = [node.metadata.name for node in base.nodes]
        self._gangs = {gang.name: gang for gang in base.gangs}
        self._changes = {name: self._draw_changes(gang) for name, gang in self._gangs.items()}
        self.objects: list[Object] = [
            *base.nodes,
            *base.budgets,
            *(self._group(group) for group in base.groups),
            *(self._pod(pod) for pod in base.pods),
        ]

    @property
    def gangs(self) -> list[str]:
        """The keys of the gangs that were drawn."""
        return [f"default/{name}" for name in self._gangs]

    def _draw_changes(self, gang: DrawnGang) -> dict[str, object]:
        draw = self._draw
        changes: dict[str, object] = {}
        if draw.random() < 0.15:
            changes["maximum"] = str(max(gang.minimum, 1) + draw.randrange(3))
        if draw.random() < 0.06:
            changes["invalid"] = draw.choice(("0", "many", "-1"))
        if draw.random() < 0.12:
            changes["finished"] = draw.choice(("Succeeded", "Succeeded", "Failed"))
        if draw.random() < 0.06:
            changes["huge"] = True
        if draw.random() < 0.2:
            changes["nominated"] = True
        return changes

    def _group(self, group: Object) -> Object:
        changes = self._changes.get(group.metadata.name)
        if changes is None:  # a part of a composite group
            return group
        texts = dict(group.metadata.annotations or {})
        if "maximum" in changes:
            texts[additions.MAX_MEMBER] = str(changes["maximum"])
        if "invalid" in changes and not isinstance(group, k.PodGroup | k.CompositePodGroup):
            texts[additions.MIN_MEMBER] = str(changes["invalid"])
        return replace(group, metadata=replace(group.metadata, annotations=texts or None))

    def _pod(self, pod: k.Pod) -> k.Pod:
        draw = self._draw
        gang = (pod.metadata.labels or {}).get("gang", "")
        changes = self._changes.get(gang, {})
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        on_pods = gang in self._gangs and self._gangs[gang].dialect in ("annotation", "fluence", "kueue")
        if on_pods and {"maximum", "invalid"} & set(changes):
            texts = dict(metadata.annotations or {})
            if "maximum" in changes:
                texts[additions.MAX_MEMBER] = str(changes["maximum"])
            if "invalid" in changes:
                texts[additions.MIN_MEMBER] = str(changes["invalid"])
            metadata = replace(metadata, annotations=texts)
        if "finished" in changes and draw.random() < 0.4 and metadata.deletion_timestamp is None:
            node = spec.node_name or draw.choice(self._nodes)
            spec, status = replace(spec, node_name=node), replace(status, phase=str(changes["finished"]))
        elif "huge" in changes and not spec.node_name:
            (container,) = spec.containers
            requests = {**(container.resources.requests or {} if container.resources else {}), "cpu": "64000m"}
            resources = k.ResourceRequirements(requests=requests)
            spec = replace(spec, containers=[replace(container, resources=resources)])
        if not spec.node_name:
            if draw.random() < 0.02:
                spec = replace(spec, scheduler_name=OTHER_SCHEDULER)
            if draw.random() < (0.5 if "nominated" in changes else 0.02):
                status = replace(status, nominated_node_name=draw.choice((*self._nodes, "gone")))
            if draw.random() < 0.02:
                metadata = replace(metadata, creation_timestamp=None)
        if draw.random() < 0.5:
            metadata = replace(metadata, owner_references=[owner_reference("Job", gang or "solo")])
        if spec.node_name and draw.random() < 0.2:
            status = replace(status, start_time=None)
        return replace(pod, metadata=metadata, spec=spec, status=status)


def limited_to(objects: Sequence[Object], pods: Collection[str]) -> list[Object]:
    """Return the objects with all other pending pods given to another scheduler, so that nobody tries them."""
    return [_given_away(obj) if isinstance(obj, k.Pod) and obj.key not in pods else obj for obj in objects]


def _given_away(pod: k.Pod) -> k.Pod:
    return pod if pod.spec.node_name else replace(pod, spec=replace(pod.spec, scheduler_name=OTHER_SCHEDULER))
