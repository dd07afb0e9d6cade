"""Files of recorded cases: one JSON object per line, with or without gzip; ``-`` is standard input.

Contract: a file or a line that cannot be read is an `InputError` with the file and the line.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, Object, Pod

LISTS = {
    "namespaces": "Namespace", "nodes": "Node", "services": "Service",
    "replicationControllers": "ReplicationController", "replicaSets": "ReplicaSet", "statefulSets": "StatefulSet",
    "podDisruptionBudgets": "PodDisruptionBudget", "storageClasses": "StorageClass", "csiNodes": "CSINode",
    "csiDrivers": "CSIDriver", "csiStorageCapacities": "CSIStorageCapacity", "volumeAttachments": "VolumeAttachment",
    "persistentVolumes": "PersistentVolume", "persistentVolumeClaims": "PersistentVolumeClaim", "pods": "Pod",
}  # fmt: skip
"""By field of a case: the kind of its objects, in the order in which they are added to the cluster."""

_GZIP_MAGIC = b"\x1f\x8b"
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw] | None)
_NONE = msgspec.Raw(b"[]")


class CaseStep(msgspec.Struct, frozen=True):
    """One step of a case: a pod to place, an object to add or change, or an object to delete."""

    place: Pod | None = None
    apply: msgspec.Raw = msgspec.Raw()
    delete: dict[str, str] | None = None


class Case(msgspec.Struct, frozen=True):
    """A cluster, the pods to place or steps to take, and the recorded decisions."""

    name: str
    family: str
    objects: tuple[Object, ...]
    pending: tuple[Pod, ...]
    steps: tuple[CaseStep, ...]
    expect: tuple[dict[str, Any], ...]
    reserve: bool = False
    evict: bool = False
    placed_start: str | None = None
    summary: bool = False
    config: bytes | None = None
    """The KubeSchedulerConfiguration; None for the default."""


class _Head(msgspec.Struct, rename="camel"):
    name: str = ""
    family: str = ""
    pending: tuple[Pod, ...] | None = None
    steps: tuple[CaseStep, ...] | None = None
    expect: tuple[dict[str, Any], ...] | None = None
    reserve: bool = False
    evict: bool = False
    placed_start: str | None = None
    detail: str | None = None


def read_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the non-empty lines of a file, numbered from 1."""
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
            is_gzip = getattr(file, "peek", bytes)(2)[:2] == _GZIP_MAGIC
            for number, line in enumerate(gzip.GzipFile(fileobj=file) if is_gzip else file, start=1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(problem[:1].lower() + problem[1:], file=path) from None


def read_case(path: str, number: int, line: bytes) -> Case:
    """Decode one line of a file."""
    try:
        raw = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        head = msgspec.json.decode(line, type=_Head)
        objects: list[Object] = []
        for name, kind in LISTS.items():
            objects += (_decoded(each, kind) for each in _ITEMS.decode(raw.get(name, _NONE)) or ())
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from error
    if "nodes" not in raw or not (head.pending is not None or head.steps is not None):
        raise InputError("not a case: it needs nodes, and pending pods or steps", file=path, obj=f"line {number}")
    if head.expect is None:
        raise InputError("the case has no recorded answers (expect)", file=path, obj=f"line {number}")
    return Case(
        name=head.name or f"line {number}", family=head.family or "?", objects=tuple(objects),
        pending=head.pending or (), steps=head.steps or (), expect=head.expect, reserve=head.reserve, evict=head.evict,
        placed_start=head.placed_start, summary=head.detail == "summary",
        config=bytes(raw["config"]) if "config" in raw else None,
    )  # fmt: skip


def decode_object(raw: msgspec.Raw) -> Object:
    """Decode one object as the record of its kind."""
    kind = msgspec.json.decode(raw, type=dict[str, Any]).get("kind", "")
    if kind not in KINDS:
        raise InputError(f"kind {kind!r} is not one that Tutti reads")
    return _decoded(raw, kind)


def _decoded(raw: msgspec.Raw, kind: str) -> Object:
    obj: Object = msgspec.json.decode(raw, type=KINDS[kind])
    return obj
