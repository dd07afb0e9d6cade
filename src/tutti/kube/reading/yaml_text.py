"""YAML parsed as kubectl parses it.

Contract: safe (creates no Python objects); uses the C parser if available. Two rules of YAML 1.1 that kubectl does not
apply are off: times stay strings, and ``1:30`` is not a number. Malformed text raises `InputError` with file and line.
A file whose aliases expand to too many values raises `InputError`, so that a short file cannot exhaust the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INT = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_MAX_REPEATED_VALUES = 1_000_000
"""How many more values than bytes a file may have after alias expansion; real files have far fewer."""

_REPLACED_TAGS = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _KubernetesLoader(_Base):  # type: ignore[misc]
    """A safe loader with kubectl's rules for scalars."""


_KubernetesLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED_TAGS]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
_KubernetesLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(f"(?:{_FLOAT.pattern})$"), list("-+0123456789.")
)
_KubernetesLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(f"(?:{_INT.pattern})$"), list("-+0123456789")
)


def parse_yaml(source: Source) -> Iterator[Any]:
    """Yield the documents of a file as trees of dicts, lists and scalars."""
    try:
        for tree in yaml.load_all(source.data, Loader=_KubernetesLoader):
            if b"*" in source.data and _size(tree, {}) > len(source.data) + _MAX_REPEATED_VALUES:
                raise InputError("YAML aliases repeat too much: write out what they stand for", file=source.name)
            yield tree
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark is not None else ""
        problem = error.problem or error.context or "cannot be read"
        raise InputError(f"YAML is malformed: {problem}{line}", file=source.name) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else "cannot be read"
        raise InputError(f"YAML is malformed: {first}", file=source.name) from None


def _size(tree: Any, sizes: dict[int, int]) -> int:
    """Return the number of values in a tree after alias expansion; each collection is counted once, in `sizes`."""
    if not isinstance(tree, (dict, list)):
        return 1
    if id(tree) not in sizes:
        sizes[id(tree)] = 1  # ends the recursion if the tree contains itself; the decoder refuses such a tree
        sizes[id(tree)] = 1 + sum(_size(each, sizes) for each in (tree.values() if isinstance(tree, dict) else tree))
    return sizes[id(tree)]
