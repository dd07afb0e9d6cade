"""Conversion of dicts and lists to typed objects, and of msgspec's errors to `InputError`.

Contract: a null means an absent field. An `InputError` names the file, the object and the field in Kubernetes notation:
``spec.containers[0].image``.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, Object
from tutti.kube.reading.sources import Source

_PATH = re.compile(r"(?s)(.*?)(?: - at (`key` in )?`\$\.?(.*?)`)?")


def convert(tree: Any, kind: str, *, source: Source) -> Object:
    """Convert a tree of dicts and lists to an object of a kind; drop nulls."""
    try:
        obj: Object = msgspec.convert(without_nulls(tree), KINDS[kind])
    except msgspec.ValidationError as error:
        raise decode_error(error, source, called=_object_name(tree, kind), tree=tree) from None
    return obj


def without_nulls(tree: Any) -> Any:
    """Return a tree of dicts and lists without null fields."""
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [without_nulls(value) for value in tree]
    return tree


def _object_name(tree: Any, kind: str) -> str:
    value = tree.get("metadata") if isinstance(tree, dict) else None
    metadata = value if isinstance(value, dict) else {}
    name = str(metadata.get("name") or metadata.get("generateName") or "without a name")
    if KINDS[kind].NAMESPACED:
        name = f"{metadata.get('namespace') or 'default'}/{name}"
    return f"{kind.lower()} {name}"


def decode_error(error: msgspec.ValidationError, source: Source, *, called: str = "", tree: Any = None) -> InputError:
    """Translate a decoder's error into an `InputError` with the object's name (`called`) and the field.

    `tree` is the decoded document; it serves to find the exact field in a mapping.
    """
    match = _PATH.fullmatch(str(error))
    if match is None:
        return InputError(str(error), file=source.name, obj=called)
    field = match[3] or ""
    if match[2]:
        field = f"{field} (a key of this mapping)" if field else ""
    if field.endswith("[...]"):
        field = _path_of_non_string(tree, field.removesuffix("[...]"))
    problem = match[1].replace("`", "").replace(" | null", "").replace("object", "a mapping").replace("array", "a list")
    return InputError(problem[:1].lower() + problem[1:], file=source.name, obj=called, field=field)


def _path_of_non_string(tree: Any, path: str) -> str:
    """Return the path of the first value in a mapping that is not a string: usually a label without quotes."""
    for step in re.findall(r"[^.\[\]]+", path):
        try:
            tree = tree[int(step)] if step.isdigit() else tree[step]
        except (KeyError, IndexError, TypeError):
            return path
    if isinstance(tree, dict):
        for key, value in tree.items():
            if not isinstance(value, str):
                return f"{path}.{key}"
    return path
