"""Objects of the official Kubernetes client for Python as dicts with the names of Kubernetes' JSON.

Contract: pure. Takes dicts as ``to_dict()`` of the client's objects gives them (``node_name``, ``api_version``), and
the objects themselves; dicts that have Kubernetes' own names stay as they are. Only names of fields are changed: keys
of labels, annotations and resources are data. An object whose kind the client leaves out takes it from its class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import inspect

from tutti.exceptions import InputError
from tutti.kube.objects import KINDS

_VERSION = re.compile(r"V\d+(?:alpha\d+|beta\d+)?")
_ACRONYM_END = re.compile(r"([A-Z]+)([A-Z][a-z])")
_WORD_END = re.compile(r"([a-z\d])([A-Z])")


def kubernetes_dict(obj: Any, name: str) -> dict[str, Any]:
    """One object, or one list of them, as a dict with the names of Kubernetes' JSON; `name` is for faults."""
    tree = obj
    if not isinstance(obj, Mapping):
        to_dict = getattr(obj, "to_dict", None)
        if to_dict is None:
            problem = f"want a path, text, or Kubernetes objects as dicts, got {type(obj).__name__}"
            raise InputError(problem, file=name)
        tree = to_dict()
        if not tree.get("kind"):
            tree = {**tree, "kind": _VERSION.sub("", type(obj).__name__, count=1)}
    return _with_json_names(tree, str(tree.get("kind") or ""))


def _with_json_names(tree: Mapping[str, Any], kind: str) -> dict[str, Any]:
    if "api_version" not in tree:
        return dict(tree)
    found = {("apiVersion" if key == "api_version" else key): value for key, value in tree.items()}
    if isinstance(found.get("items"), list) and kind.endswith("List"):
        item_kind = kind.removesuffix("List")
        found["items"] = [_with_json_names(item, str(item.get("kind") or item_kind)) for item in found["items"]]
        return found
    known = KINDS.get(kind)
    renamed: dict[str, Any] = found if known is None else _renamed(found, inspect.type_info(known))
    return renamed


def _renamed(value: Any, info: inspect.Type) -> Any:
    """A value with the names of its record type; what the type does not say anything about stays."""
    if isinstance(info, inspect.UnionType):
        wanted = (inspect.StructType, inspect.DictType) if isinstance(value, Mapping) else (inspect.ListType,)
        fitting = next((each for each in info.types if isinstance(each, wanted)), None)
        return value if fitting is None else _renamed(value, fitting)
    if isinstance(info, inspect.StructType) and isinstance(value, Mapping):
        names = _field_names(info.cls)
        types = {field.encode_name: field.type for field in info.fields}
        pairs = ((names.get(key, key), each) for key, each in value.items())
        return {key: _renamed(each, types[key]) if key in types else each for key, each in pairs}
    if isinstance(info, inspect.DictType) and isinstance(value, Mapping):
        return {key: _renamed(each, info.value_type) for key, each in value.items()}
    if isinstance(info, inspect.ListType) and isinstance(value, list):
        return [_renamed(each, info.item_type) for each in value]
    return value


@lru_cache(maxsize=256)
def _field_names(record: type) -> dict[str, str]:
    """The client's names for the fields of a record: ``pod_ip`` for ``podIP``, as its generator makes them."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    return {_snake_case(field.encode_name): field.encode_name for field in info.fields}


def _snake_case(name: str) -> str:
    return _WORD_END.sub(r"\1_\2", _ACRONYM_END.sub(r"\1_\2", name)).lower()
