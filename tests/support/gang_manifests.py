"""Manifests of gangs as users write them, and the gangs that they describe."""

from __future__ import annotations

import json
from collections.abc import Iterable
from textwrap import dedent

from tests.support.documents import new_pod
from tutti.kube.gangs.gang import Gang, Membership
from tutti.kube.gangs.reader import GROUP_KINDS, membership, read_gang, root_group
from tutti.kube.objects import Object, Pod, PriorityClass
from tutti.kube.reading.decode import decode_objects
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.sources import Source


def pod(name, *, labels=None, annotations=None, **spec):
    """The manifest of a pod."""
    return json.dumps(new_pod(name, metadata={"labels": labels, "annotations": annotations}, **spec))


def pods(name, count, **fields):
    """The manifests of pods that differ only in their number."""
    return [pod(f"{name}-{number}", **fields) for number in range(count)]


def objects(*texts):
    """The objects of manifests."""
    text = "\n---\n".join(dedent(text) for text in texts)
    return decode_objects(parse_file(Source("gangs.yaml", text.encode()))).objects


def read_gangs(objects: Iterable[Object]) -> dict[str, Gang]:
    """Return all gangs that pods among the objects name, by key, sorted by key."""
    known: dict[tuple[str, str], Object] = {}
    pods: list[tuple[Pod, Membership]] = []
    for obj in objects:
        if isinstance(obj, Pod):
            pod_membership = membership(obj)
            if pod_membership is not None:
                pods.append((obj, pod_membership))
        elif obj.KIND in GROUP_KINDS or isinstance(obj, PriorityClass):
            known[obj.KIND, obj.key] = obj

    def find(kind: str, key: str) -> Object | None:
        return known.get((kind, key))

    members: dict[str, list[Pod]] = {}
    for pod, pod_membership in pods:
        members.setdefault(root_group(pod_membership.group, find), []).append(pod)
    return {key: read_gang(key, members[key], find) for key in sorted(members)}


def gang(*texts):
    """The only gang of manifests."""
    (found,) = read_gangs(objects(*texts)).values()
    return found


def problem(*texts):
    """The problem of the only gang of manifests."""
    return gang(*texts).problem
