"""A Gardener snapshot that goes on: the document that was given, with nodes and bindings that came later.

Contract: the document is changed only where something came about: nodes that joined and their daemons are added, pods
that got a node say so. Everything else is posted as it was given, unknown fields and the case of names included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tutti.kube.objects import Node, Pod
from tutti.kube.reading.sources import Source
from tutti.wire.case_folding import parse_json

_COMMITTED = 1
Data = dict[str, Any]


class Story:
    """See the module's contract."""

    def __init__(self, source: Source) -> None:
        self._given = source.data
        self._tree: Data | None = None
        self._pods: dict[str, Data] = {}
        self._source = source

    @property
    def body(self) -> bytes:
        """The snapshot as it is now."""
        return self._given if self._tree is None else msgspec.json.encode(self._tree)

    def bind(self, pods: Mapping[str, str]) -> None:
        """Note which pods got which node."""
        if not pods:
            return
        self._opened()
        for key, node in pods.items():
            entry = self._pods.get(key)
            if entry is not None:
                _set(entry, "NodeName", node)
                _set(entry, "NominatedNodeName", "")
                _set(entry, "PodScheduleStatus", _COMMITTED)
                spec = entry.get(_name(entry, "Spec"))
                if isinstance(spec, dict):
                    _set(spec, "nodeName", node)

    def join(self, node: Node, daemons: Iterable[Pod]) -> None:
        """Note that a node has joined, with its daemons."""
        tree = self._opened()
        _list(tree, "Nodes").append(
            {
                "Name": node.metadata.name,
                "Labels": node.metadata.labels,
                "Taints": msgspec.to_builtins(node.spec.taints),
                "Allocatable": node.status.allocatable,
                "Capacity": node.status.capacity,
            }
        )
        for pod in daemons:
            _list(tree, "Pods").append(
                {
                    "Name": pod.metadata.name,
                    "Namespace": pod.metadata.namespace,
                    "UID": pod.metadata.uid,
                    "NodeName": node.metadata.name,
                    "Labels": pod.metadata.labels,
                    "Spec": msgspec.to_builtins(pod.spec),
                    "PodScheduleStatus": _COMMITTED,
                }
            )

    def _opened(self) -> Data:
        """The document as a tree, from the first change on."""
        if self._tree is None:
            tree: Data = parse_json(self._source)
            self._tree = tree
            for entry in _list(tree, "Pods"):
                if isinstance(entry, dict):
                    namespace = entry.get(_name(entry, "Namespace")) or "default"
                    self._pods[f"{namespace}/{entry.get(_name(entry, 'Name'))}"] = entry
        return self._tree


def _name(tree: Data, name: str) -> str:
    """What a document calls a field, in whatever case."""
    if name in tree:
        return name
    lower = name.lower()
    return next((key for key in tree if key.lower() == lower), name)


def _set(tree: Data, name: str, value: Any) -> None:
    tree[_name(tree, name)] = value


def _list(tree: Data, name: str) -> list[Any]:
    key = _name(tree, name)
    if not isinstance(tree.get(key), list):
        tree[key] = []
    found: list[Any] = tree[key]
    return found
