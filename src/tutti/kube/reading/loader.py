"""Parsed files into a snapshot: everything is decoded and checked, or nothing.

Contract: `load_files` gives the objects just as they are written. Defaults, expansion of workloads and admission of new
pods are the next step (`kube.admission.prepare`). Rules for what is ambiguous:

- An object that comes twice: in two files the later one replaces the earlier one, so that a second ``-f`` can
  override a dump (noted). Twice in one file it must say the same, else the file contradicts itself and is refused.
- A namespaced object without a namespace is in ``default`` (noted).
- An object with ``generateName`` alone gets a name from it, the same one at every run.
- Kinds that Tutti does not read, and kinds of the same name in other API groups, are counted and left out.

A fault raises `InputError`: one line with file, object and field.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.generated_names import suffixed
from tutti.kube.objects import KINDS, Object
from tutti.kube.reading.decode import DecodedFile, decode_objects
from tutti.kube.reading.parsed_file import ParsedFile
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.validation import validate

_Key = tuple[str, str]


def load_files(files: Iterable[ParsedFile]) -> Snapshot:
    """All objects of files; a file is taken from the iterable only when all objects before it are decoded."""
    found: dict[_Key, Object] = {}
    skipped: Counter[str] = Counter()
    present: set[str] = set()
    without_namespace: Counter[str] = Counter()
    replaced: Counter[str] = Counter()
    with _without_collector():
        for file in files:
            decoded = decode_objects(file)
            skipped += decoded.skipped
            present |= decoded.present
            objects = _checked(decoded, file.source.name, without_namespace)
            replaced.update(kind for kind, key in objects if (kind, key) in found)
            found.update(objects)
    return Snapshot(
        objects=by_kind(found.values()),
        present=frozenset(present),
        skipped=dict(sorted(skipped.items())),
        notes=(
            *_counted(without_namespace, "without a namespace taken as in namespace default"),
            *_counted(replaced, "replaced by a later file"),
        ),
    )


def _checked(decoded: DecodedFile, file: str, without_namespace: Counter[str]) -> dict[_Key, Object]:
    """The objects of one file by kind and key, each of them sound."""
    objects: dict[_Key, Object] = {}
    for place, obj in enumerate(decoded.objects):
        metadata = obj.metadata
        if not metadata.name and metadata.generate_name:
            name = suffixed(metadata.generate_name, f"{file}/{place}")
            obj = replace(obj, metadata=replace(metadata, name=name))
        try:
            validate(obj)
        except InputError as error:
            raise InputError(error.problem, file=file, obj=_object_name(obj), field=error.field) from None
        if obj.NAMESPACED and not metadata.namespace:
            without_namespace[obj.KIND] += 1
            obj = replace(obj, metadata=replace(obj.metadata, namespace="default"))
        key = (obj.KIND, obj.key)
        before = objects.setdefault(key, obj)
        if before is not obj and before != obj:
            raise InputError("it is there twice, with different content", file=file, obj=_object_name(obj))
    return objects


def _object_name(obj: Object) -> str:
    name = obj.key if obj.metadata.name else f"{obj.key}without a name"
    return f"{obj.KIND.lower()} {name}"


def _counted(counts: Counter[str], what: str) -> Iterator[str]:
    for kind, cls in KINDS.items():
        if number := counts[kind]:
            yield f"{number} {cls.WIRE_KIND}{'s' if number > 1 else ''} {what}"


@contextmanager
def _without_collector() -> Iterator[None]:
    """Decoded objects hold no cycles: looking for some while they pile up would take longer than the decoding."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
