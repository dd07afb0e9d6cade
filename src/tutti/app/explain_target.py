"""Which pod or gang a user means with ``pod/NAME``, ``gang/NAME`` or a bare name.

Contract: pure. A name that is not in the cluster is a `NotFoundError`, one that several namespaces have an
`InputError`; both say what to do next. A group within a larger gang stands for that gang.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.gang_state import Gangs
from tutti.exceptions import InputError, NotFoundError
from tutti.kube.reading.snapshot import Snapshot

_GANG_WORDS = frozenset(("gang", "gangs", "podgroup", "podgroups", "pg"))
"""What may stand before the slash for a gang; alone, it stands for all gangs."""
_NAMED = 5


class TargetKind(StrEnum):
    """What is to be explained."""

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
    """The pod or the gang that a user means."""
    resource, slash, name = text.rpartition("/")
    if slash and resource.lower() in _GANG_WORDS:
        return ExplainTarget(TargetKind.GANG, find_gang(cluster, name, namespace))
    if text.lower() in _GANG_WORDS and not any(pod.metadata.name == text for pod in snapshot.pods):
        return ExplainTarget(TargetKind.ALL_GANGS)
    return ExplainTarget(TargetKind.POD, find_pod(snapshot, cluster, text, namespace=namespace))


def find_pod(snapshot: Snapshot, cluster: Cluster, text: str, *, namespace: str | None) -> str:
    """The key of the pod that a user means with ``pod/NAME`` or ``NAME``."""
    resource, slash, name = text.rpartition("/")
    if slash and resource.lower() not in ("pod", "pods", "po"):
        raise InputError(f'want pod/NAME, got "{text}"')
    found = [
        pod
        for pod in snapshot.pods
        if pod.metadata.name == name and (namespace is None or (pod.metadata.namespace or "default") == namespace)
    ]
    if not found:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        raise NotFoundError(f"pod {name!r} is not in {where}")
    if len(found) > 1:
        places = ", ".join(sorted(pod.metadata.namespace or "default" for pod in found))
        raise InputError(f"pod {name!r} is in several namespaces ({places}): choose one with -n")
    if found[0].key not in cluster.pods.row_of:
        raise NotFoundError(
            f"pod {found[0].key!r} has finished ({found[0].status.phase}): the scheduler is done with it"
        )
    return found[0].key


def find_gang(cluster: Cluster, name: str, namespace: str | None) -> str:
    """The key of the gang that a user means."""
    gangs = Gangs(cluster)
    named = zip(cluster.groups.keys, cluster.groups.members, strict=True)
    roots = {key: gangs.key_of(min(rows)) for key, rows in named if rows}
    known = {**{key: root or key for key, root in roots.items()}, **{root: root for root in roots.values() if root}}
    inside = {key: root for key, root in known.items() if namespace is None or key.partition("/")[0] == namespace}
    found = sorted({root for key, root in inside.items() if key.partition("/")[2] == name})
    if len(found) > 1:
        places = ", ".join(key.partition("/")[0] for key in found)
        raise InputError(f"gang {name!r} is in several namespaces ({places}): choose one with -n")
    if not found:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        raise NotFoundError(f"gang {name!r} is not in {where}: {_hint(name, sorted(inside))}")
    return found[0]


def _hint(name: str, keys: Sequence[str]) -> str:
    names = list(dict.fromkeys(key.partition("/")[2] for key in keys))
    if not names:
        return "no pod names a gang there"
    close = get_close_matches(name, names, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"there are {', '.join(names[:_NAMED])}{more}"
