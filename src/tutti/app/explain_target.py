"""Find the pod or gang that a user means by ``pod/NAME``, ``gang/NAME`` or a bare name.

Contract: pure. A name that is not in the cluster raises `NotFoundError`, a name in several namespaces `InputError`;
both messages state the next step. The name of a group within a larger gang stands for that gang.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.exceptions import InputError, NotFoundError
from tutti.kube.reading.snapshot import Snapshot

_GANG_WORDS = frozenset(("gang", "gangs", "podgroup", "podgroups", "pg"))
"""Words that mean a gang before a slash; without a slash they mean all gangs."""
_MAX_NAMES = 5


class TargetKind(StrEnum):
    """What to explain."""

    POD = "pod"
    GANG = "gang"
    ALL_GANGS = "gangs"


class ExplainTarget(NamedTuple):
    """A pod or a gang by its key, or all gangs."""

    kind: TargetKind
    key: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.key.partition('/')[2]}".rstrip()


def find_target(snapshot: Snapshot, cluster: Cluster, text: str, *, namespace: str | None) -> ExplainTarget:
    """Return the pod or gang that a user means."""
    resource, slash, name = text.rpartition("/")
    if slash and resource.lower() in _GANG_WORDS:
        return ExplainTarget(TargetKind.GANG, find_gang(cluster, name, namespace))
    if text.lower() in _GANG_WORDS and not any(pod.metadata.name == text for pod in snapshot.pods):
        return ExplainTarget(TargetKind.ALL_GANGS)
    return ExplainTarget(TargetKind.POD, find_pod(snapshot, cluster, text, namespace=namespace))


def scheduler_of(cluster: Cluster, target: ExplainTarget) -> str | None:
    """Return the `schedulerName` of a pod, or the one that the pods of a gang share, of which waiting pods count first.

    None if the pods have no name or differ.
    """
    if target.kind is TargetKind.POD:
        return cluster.pod(target.key).spec.scheduler_name
    if target.kind is TargetKind.ALL_GANGS:
        return None
    table, rows = cluster.pods, Gangs.of(cluster).rows(target.key)
    waiting = [row for row in rows if table.node_names[row] is None]
    names = {pod.spec.scheduler_name for row in waiting or rows if (pod := table.objects[row]) is not None}
    return names.pop() if len(names) == 1 else None


def find_pod(snapshot: Snapshot, cluster: Cluster, text: str, *, namespace: str | None) -> str:
    """Return the key of the pod that a user means by ``pod/NAME`` or ``NAME``."""
    resource, slash, name = text.rpartition("/")
    if slash and resource.lower() not in ("pod", "pods", "po"):
        raise InputError(f'want pod/NAME, got "{text}"')
    named = [pod for pod in snapshot.pods if pod.metadata.name == name]
    matches = [pod for pod in named if namespace is None or (pod.metadata.namespace or "default") == namespace]
    namespaces = ", ".join(sorted(pod.metadata.namespace or "default" for pod in named))
    if not matches:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        elsewhere = f", but in {namespaces}: choose with -n" if named else ""
        raise NotFoundError(f"pod {name!r} is not in {where}{elsewhere}")
    if len(matches) > 1:
        raise InputError(f"pod {name!r} is in several namespaces ({namespaces}): choose one with -n")
    if matches[0].key not in cluster.pods.row_of:
        raise NotFoundError(
            f"pod {matches[0].key!r} has finished ({matches[0].status.phase}): the scheduler is done with it"
        )
    return matches[0].key


def find_gang(cluster: Cluster, name: str, namespace: str | None) -> str:
    """Return the key of the gang with this name, or of the gang that contains a group with this name."""
    gangs = Gangs(cluster)
    groups = zip(cluster.groups.keys, cluster.groups.members, strict=True)
    roots = {key: gangs.key_of(min(rows)) for key, rows in groups if rows}
    gang_of = {**{key: root or key for key, root in roots.items()}, **{root: root for root in roots.values() if root}}
    in_namespace = {
        key: root for key, root in gang_of.items() if namespace is None or key.partition("/")[0] == namespace
    }
    matches = sorted({root for key, root in in_namespace.items() if key.partition("/")[2] == name})
    if len(matches) > 1:
        namespaces = ", ".join(key.partition("/")[0] for key in matches)
        raise InputError(f"gang {name!r} is in several namespaces ({namespaces}): choose one with -n")
    if not matches:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        others = sorted({key.partition("/")[0] for key in gang_of if key.partition("/")[2] == name})
        if others:
            raise NotFoundError(f"gang {name!r} is not in {where}, but in {', '.join(others)}: choose with -n")
        raise NotFoundError(f"gang {name!r} is not in {where}: {_hint(name, sorted(in_namespace))}")
    return matches[0]


def _hint(name: str, keys: Sequence[str]) -> str:
    names = list(dict.fromkeys(key.partition("/")[2] for key in keys))
    if not names:
        return "no pod names a gang there"
    similar = get_close_matches(name, names, n=3)
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"there are {', '.join(names[:_MAX_NAMES])}{more}"
