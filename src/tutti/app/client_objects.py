"""Convert objects of the official Kubernetes client for Python to dicts with the field names of Kubernetes' JSON.

Contract: pure. The input is the client's objects, or the dicts that their ``to_dict()`` returns (``node_name``,
``api_version``); dicts with Kubernetes' own names stay unchanged. Only field names change: keys of labels, annotations
and resources are data. If the client leaves out an object's kind, the name of the object's class gives the kind.
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
    """Return an object, or a list such as ``PodList``, as a dict with JSON field names; `name` is for errors."""
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
    renamed = {("apiVersion" if key == "api_version" else key): value for key, value in tree.items()}
    if isinstance(renamed.get("items"), list) and kind.endswith("List"):
        item_kind = kind.removesuffix("List")
        renamed["items"] = [_with_json_names(item, str(item.get("kind") or item_kind)) for item in renamed["items"]]
        return renamed
    known = KINDS.get(kind)
    converted: dict[str, Any] = renamed if known is None else _renamed(renamed, inspect.type_info(known))
    return converted


def _renamed(value: Any, info: inspect.Type) -> Any:
    """Return a value with the field names of its record type; fields that the type does not have stay unchanged."""
    if isinstance(info, inspect.UnionType):
        wanted = (inspect.StructType, inspect.DictType) if isinstance(value, Mapping) else (inspect.ListType,)
        matching = next((each for each in info.types if isinstance(each, wanted)), None)
        return value if matching is None else _renamed(value, matching)
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
    """Return the JSON name of each field by the client's name, for example ``podIP`` by ``pod_ip``."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    return {_snake_case(field.encode_name): field.encode_name for field in info.fields}


def _snake_case(name: str) -> str:
    return _WORD_END.sub(r"\1_\2", _ACRONYM_END.sub(r"\1_\2", name)).lower()
