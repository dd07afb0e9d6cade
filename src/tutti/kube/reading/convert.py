"""Trees of dicts and lists as typed objects, and what a decoder has against them in the words of a Kubernetes user.

Contract: a null means an absent field. A fault becomes an `InputError` that names file, object and field as a user
would write it: ``spec.containers[0].image``.
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
    """A tree as a typed object, nulls left out."""
    try:
        obj: Object = msgspec.convert(_without_nulls(tree), KINDS[kind])
    except msgspec.ValidationError as error:
        raise fault(error, source, called=_called(tree, kind), tree=tree) from None
    return obj


def _without_nulls(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(value) for value in tree]
    return tree


def _called(tree: Any, kind: str) -> str:
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    names = metadata if isinstance(metadata, dict) else {}
    name = str(names.get("name") or names.get("generateName") or "without a name")
    if KINDS[kind].NAMESPACED:
        name = f"{names.get('namespace') or 'default'}/{name}"
    return f"{kind.lower()} {name}"


def fault(error: msgspec.ValidationError, source: Source, *, called: str = "", tree: Any = None) -> InputError:
    """What the decoder says, in the words of a Kubernetes user."""
    parts = _PATH.fullmatch(str(error))
    if parts is None:
        return InputError(str(error), file=source.name, obj=called)
    field = parts[3] or ""
    if parts[2]:
        field = f"{field} (a name in it)" if field else ""
    if field.endswith("[...]"):
        field = _named_value(tree, field.removesuffix("[...]"))
    problem = parts[1].replace("`", "").replace(" | null", "").replace("object", "a mapping").replace("array", "a list")
    return InputError(problem[:1].lower() + problem[1:], file=source.name, obj=called, field=field)


def _named_value(tree: Any, path: str) -> str:
    """The path of the value in a mapping that is no text: usually a label that was not quoted."""
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
