"""Private fields: which fields the structs lack, and the annotations that are removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect
from msgspec.structs import replace

from tests.support.builders import pod
from tutti.kube.objects import KINDS, Object, ObjectMeta
from tutti.kube.private_fields import without_private_fields

PRIVATE = {
    "env", "envFrom", "value", "valueFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe",
    "startupProbe", "exec", "httpGet", "httpHeaders", "ephemeralContainers", "imagePullSecrets", "managedFields",
    "data", "stringData", "binaryData", "secret", "configMap", "projected", "parameters", "volumeAttributes",
}  # fmt: skip
NOT_PRIVATE = {("PriorityClass", "value"), ("Taint", "value"), ("Toleration", "value")}


def fields_of(info: Any, seen: set[type]) -> Iterator[tuple[str, str]]:
    """Yield the names of all structs and fields that a type can hold."""
    if isinstance(info, inspect.StructType):
        if info.cls not in seen:
            seen.add(info.cls)
            for field in info.fields:
                yield info.cls.__name__, field.encode_name
                yield from fields_of(field.type, seen)
        return
    for part in ("types", "item_types"):
        for each in getattr(info, part, ()):
            yield from fields_of(each, seen)
    for part in ("item_type", "key_type", "value_type"):
        if hasattr(info, part):
            yield from fields_of(getattr(info, part), seen)


@pytest.mark.parametrize("kind", KINDS)
def test_structs_have_no_private_fields(kind: str) -> None:
    fields = set(fields_of(inspect.type_info(KINDS[kind]), set()))
    assert ("ObjectMeta", "name") in fields
    assert not {each for each in fields - NOT_PRIVATE if each[1] in PRIVATE}


def test_there_are_no_structs_for_secrets_and_config_maps() -> None:
    assert not {"Secret", "ConfigMap"} & {cls.WIRE_KIND for cls in KINDS.values()}


def annotated(obj: Object, **annotations: str) -> Object:
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations or None))


@pytest.mark.parametrize(
    "name",
    [
        "kubectl.kubernetes.io/last-applied-configuration",
        "objectset.rio.cattle.io/applied",
        "kapp.k14s.io/original",
        "kapp.k14s.io/original-diff-md5",
        "banzaicloud.com/last-applied",
    ],
)
def test_copies_of_the_manifest_are_removed(name: str) -> None:
    plain = annotated(pod("p"), kept="yes")
    assert without_private_fields(annotated(pod("p"), kept="yes", **{name: "{}"})) == plain
    assert without_private_fields(plain) is plain
    assert without_private_fields(annotated(pod("p"), **{name: "{}"})).metadata.annotations is None
    assert without_private_fields(replace(plain, metadata=ObjectMeta())).metadata == ObjectMeta()
