"""The group index equals a rebuilt index after every edit, and is restored by a rollback."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from msgspec.structs import replace

from tests.support.cluster_state import cluster_state
from tests.support.gang_dialects import membership_of
from tests.support.gang_manifests import read_gangs
from tests.support.random_gang_clusters import GONE, RandomGangCluster
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Edit, Hold, Put, Release, Remove, Unbind
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.exceptions import ConflictError, NotFoundError
from tutti.kube import objects as k
from tutti.kube.gangs.reader import GROUP_KINDS, membership
from tutti.kube.objects import Object

EDITS = 150


class Editor:
    """Draws edits that concern groups; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.drawn = RandomGangCluster(seed)
        self._gangs = 0

    def edit(self, cluster: Cluster) -> Edit:
        """Draw an edit, which the cluster may refuse."""
        draw = self.draw
        keys = sorted(cluster.pods.row_of)
        pod = draw.choice(keys) if keys else "default/missing"
        node = draw.choice(self.drawn.nodes).metadata.name
        match draw.randrange(10):
            case 0 | 1 if keys:
                return Put(self._renamed(cluster.pod(pod)))
            case 2 if keys:
                return Put(self._changed(cluster.pod(pod)))
            case 3:
                return Remove("Pod", pod)
            case 4:
                return Put(draw.choice(self.drawn.pods))
            case 5:
                return draw.choice((Bind(pod, node), Unbind(pod), Hold(pod, node), Release(pod)))
            case 6:
                return self._object(cluster)
            case 7:
                return Put(draw.choice(self.drawn.groups)) if self.drawn.groups else Remove("Pod", pod)
            case 8:
                return draw.choice((Remove("Node", node), Put(draw.choice(self.drawn.nodes))))
            case _:
                return Put(self._new_pod())

    def _object(self, cluster: Cluster) -> Edit:
        """Change or remove an object that describes groups."""
        draw = self.draw
        there = [obj for kind in GROUP_KINDS for obj in cluster.objects[kind].values()]
        if not there or draw.random() < 0.3:
            value = draw.choice((0, 10, 1000))
            return Put(k.PriorityClass(metadata=k.ObjectMeta(name="some"), value=value))
        obj = draw.choice(there)
        if draw.random() < 0.4:
            return Remove(obj.KIND, obj.key)
        texts = {"tutti.dev/disruption": draw.choice(("single", "whole", "all", "none at all"))}
        return Put(replace(obj, metadata=replace(obj.metadata, annotations=texts)))

    def _renamed(self, pod: k.Pod) -> k.Pod:
        """Put a pod into another gang, into none, or into two."""
        draw = self.draw
        if draw.random() < 0.25 or not self.drawn.gangs:
            meta = replace(pod.metadata, labels=None, annotations=None)
            return replace(pod, metadata=meta, spec=replace(pod.spec, scheduling_group=None))
        made = draw.choice(self.drawn.gangs)
        part = draw.choice(made.parts)[0] if made.parts else ""
        labels, annotations, fields = membership_of(made, part)
        if draw.random() < 0.1:
            annotations = {**annotations, "pod-group": "another"}
        meta = replace(pod.metadata, labels=labels or None, annotations=annotations or None)
        return replace(pod, metadata=meta, spec=replace(pod.spec, **{"scheduling_group": None, **fields}))

    def _changed(self, pod: k.Pod) -> k.Pod:
        """Let a pod finish, begin to terminate, or move."""
        draw = self.draw
        match draw.randrange(3):
            case 0:
                return replace(pod, status=replace(pod.status, phase=draw.choice(("Succeeded", "Failed"))))
            case 1:
                return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=draw.choice((None, GONE))))
            case _:
                node = draw.choice((None, draw.choice(self.drawn.nodes).metadata.name))
                return replace(pod, spec=replace(pod.spec, node_name=node))

    def _new_pod(self) -> k.Pod:
        """Return a member of a new gang."""
        self._gangs += 1
        made = self.drawn.draw_gang(f"more-{self._gangs}")
        self.drawn.add(made, running=False)
        return self.drawn.pods[-1]


def apply(cluster: Cluster, editor: Editor) -> None:
    # An edit that contradicts the cluster is refused, and the cluster stays as it was.
    with suppress(ConflictError, NotFoundError):
        cluster.apply(editor.edit(cluster))


def rebuilt(cluster: Cluster) -> Cluster:
    """Build the same state in an empty cluster."""
    fresh = Cluster()
    for edit in cluster.edits():
        fresh.apply(edit)
    return fresh


def column(cluster: Cluster) -> dict[str, object]:
    """Return the group index by names."""
    groups, pods = cluster.groups, cluster.pods
    return {
        "members": {
            key: {pods.keys[row] for row in rows} for key, rows in zip(groups.keys, groups.members, strict=True) if rows
        },
        "column": {key: groups.keys[pods.group[row]] for key, row in pods.row_of.items() if pods.group[row] >= 0},
        "named by": {pods.keys[row]: says for row, says in groups.membership_by_row.items()},
    }


def records(cluster: Cluster, gangs: Gangs) -> dict[str, object]:
    """Return every gang with its members, parts and running pods."""
    found: dict[str, object] = {}
    names, every = cluster.pods.keys, gangs.keys()
    for key in every:
        rows = gangs.rows(key)
        parts = {names[row]: part for row, part in gangs.parts_of(key).items()}
        standing = gangs.state(key, ())
        found[key] = gangs.gang(key), {names[r] for r in rows}, parts, {names[r] for r in standing.running}
    return found


def objects(cluster: Cluster) -> list[Object]:
    """Return all objects as they were put."""
    pods = [pod for pod in cluster.pods.objects if pod is not None]
    return [*(obj for kind in cluster.objects.values() for obj in kind.values()), *pods]


@pytest.mark.parametrize("seed", range(12))
def test_after_every_edit_the_index_equals_a_rebuilt_index(seed: int) -> None:
    editor = Editor(seed)
    cluster = Cluster(editor.drawn.objects)
    gangs = Gangs(cluster)
    for number in range(EDITS):
        apply(cluster, editor)
        fresh = rebuilt(cluster)
        assert column(cluster) == column(fresh), number
        assert records(cluster, gangs) == records(fresh, Gangs(fresh)), number


@pytest.mark.parametrize("seed", range(12))
def test_the_index_matches_the_pods(seed: int) -> None:
    editor = Editor(seed)
    cluster = Cluster(editor.drawn.objects)
    gangs = Gangs(cluster)
    for number in range(EDITS):
        apply(cluster, editor)
        declared = {pod.key: says for pod in objects(cluster) if isinstance(pod, k.Pod) and (says := membership(pod))}
        assert column(cluster)["named by"] == declared, number
        every = gangs.keys()
        assert {key: gangs.gang(key) for key in every} == read_gangs(objects(cluster)), number


@pytest.mark.parametrize("seed", range(40))
def test_rollback_restores_groups(seed: int) -> None:
    editor = Editor(seed)
    draw = random.Random(seed)
    cluster = Cluster(editor.drawn.objects)
    gangs = Gangs(cluster)
    for _ in range(draw.randrange(20)):
        apply(cluster, editor)

    def seen() -> object:
        return (
            cluster_state(cluster),
            column(cluster),
            records(cluster, gangs),
            list(cluster.events),
            dict(cluster.holds),
        )

    first = seen()
    outer = cluster.mark()
    for _ in range(draw.randrange(15)):
        apply(cluster, editor)
    second = seen()
    inner = cluster.mark()
    for _ in range(draw.randrange(15)):
        apply(cluster, editor)
        records(cluster, gangs)
    cluster.rollback(inner)
    assert seen() == second
    cluster.rollback(outer)
    assert seen() == first


@pytest.mark.parametrize("seed", range(12))
def test_a_copy_has_independent_groups(seed: int) -> None:
    editor = Editor(seed)
    cluster = Cluster(editor.drawn.objects)
    twin = cluster.copy()
    before = column(cluster)
    assert column(twin) == before
    for _ in range(30):
        apply(twin, editor)
    assert column(cluster) == before
    assert column(twin) == column(rebuilt(twin))
