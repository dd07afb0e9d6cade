"""Loading of parsed files, or of objects that are already decoded, into a snapshot.

Contract: `load_files` returns the objects as written in the files, all decoded and validated, or raises `InputError`:
one line with file, object and field. `load_decoded` does the same for objects that an API server has listed. Defaults,
expansion of workloads and admission of new pods are the next step (`kube.admission.prepare`). Ambiguous input:

- An object in two files: the later file wins, so that a second ``-f`` can override a dump; a note says so.
- An object twice in one file: both copies must be equal, otherwise `InputError`.
- A namespaced object without a namespace is in namespace ``default``; a note says so.
- An object with only ``generateName`` gets a generated name, the same in every run.
- Objects of kinds that Tutti does not read, or of a known kind in another API group, are skipped and counted.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.generated_names import generated_name
from tutti.kube.objects import KINDS, Object
from tutti.kube.reading.decode import DecodedFile, decode_objects
from tutti.kube.reading.parsed_file import ParsedFile
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.validation import validate

_Key = tuple[str, str]


def load_files(files: Iterable[ParsedFile]) -> Snapshot:
    """Load all files; the iterable is advanced to the next file only after the previous file is decoded."""
    return load_decoded(map(decode_objects, files))


def load_decoded(files: Iterable[DecodedFile]) -> Snapshot:
    """Load files that are decoded already; the iterable is advanced after the previous file is validated."""
    loaded: dict[_Key, Object] = {}
    skipped: Counter[str] = Counter()
    present_kinds: set[str] = set()
    without_namespace: Counter[str] = Counter()
    replaced: Counter[str] = Counter()
    with _garbage_collection_disabled():
        for decoded in files:
            skipped += decoded.skipped
            present_kinds |= decoded.present_kinds
            objects = _validated_objects(decoded, decoded.file, without_namespace)
            replaced.update(kind for kind, key in objects if (kind, key) in loaded)
            loaded.update(objects)
    return Snapshot(
        objects=by_kind(loaded.values()),
        present_kinds=frozenset(present_kinds),
        skipped=dict(sorted(skipped.items())),
        notes=(
            *_count_notes(without_namespace, "without a namespace taken as in namespace default"),
            *_count_notes(replaced, "replaced by a later file"),
        ),
    )


def _validated_objects(decoded: DecodedFile, file: str, without_namespace: Counter[str]) -> dict[_Key, Object]:
    """Return the valid objects of one file by kind and key; count objects without a namespace."""
    objects: dict[_Key, Object] = {}
    for index, obj in enumerate(decoded.objects):
        metadata = obj.metadata
        if not metadata.name and metadata.generate_name:
            name = generated_name(metadata.generate_name, f"{file}/{index}")
            obj = replace(obj, metadata=replace(metadata, name=name))
        try:
            validate(obj)
        except InputError as error:
            raise InputError(error.problem, file=file, obj=_object_name(obj), field=error.field) from None
        if obj.NAMESPACED and not metadata.namespace:
            without_namespace[obj.KIND] += 1
            obj = replace(obj, metadata=replace(obj.metadata, namespace="default"))
        key = (obj.KIND, obj.key)
        first = objects.setdefault(key, obj)
        if first is not obj and first != obj:
            raise InputError("defined twice, with different content", file=file, obj=_object_name(obj))
    return objects


def _object_name(obj: Object) -> str:
    name = obj.key if obj.metadata.name else f"{obj.key}without a name"
    return f"{obj.KIND.lower()} {name}"


def _count_notes(counts: Counter[str], text: str) -> Iterator[str]:
    for kind, cls in KINDS.items():
        if number := counts[kind]:
            yield f"{number} {cls.WIRE_KIND}{'s' if number > 1 else ''} {text}"


@contextmanager
def _garbage_collection_disabled() -> Iterator[None]:
    """Disable garbage collection: decoded objects have no cycles, and the search for cycles is slower than decoding."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
