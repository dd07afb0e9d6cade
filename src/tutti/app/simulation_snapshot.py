"""The Gardener snapshot that a scaling simulation posts: the input document, with new nodes and bindings added.

Contract: the document changes only where the simulation changed the cluster: new nodes and their daemons are added, and
placed pods get a node name. All other content is posted as it was read, including unknown fields and the case of names.
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


class SimulationSnapshot:
    """See the module's docstring."""

    def __init__(self, source: Source) -> None:
        self._input = source.data
        self._tree: Data | None = None
        self._pods: dict[str, Data] = {}
        self._source = source

    @property
    def body(self) -> bytes:
        """The current snapshot as JSON."""
        return self._input if self._tree is None else msgspec.json.encode(self._tree)

    def bind(self, pods: Mapping[str, str]) -> None:
        """Record the nodes of placed pods, by pod key."""
        if not pods:
            return
        self._parsed_tree()
        for key, node in pods.items():
            entry = self._pods.get(key)
            if entry is not None:
                _set(entry, "NodeName", node)
                _set(entry, "NominatedNodeName", "")
                _set(entry, "PodScheduleStatus", _COMMITTED)
                spec = entry.get(_field_name(entry, "Spec"))
                if isinstance(spec, dict):
                    _set(spec, "nodeName", node)

    def join(self, node: Node, daemons: Iterable[Pod]) -> None:
        """Add a new node with its daemons."""
        tree = self._parsed_tree()
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

    def _parsed_tree(self) -> Data:
        """Return the document as a tree, which is parsed at the first change."""
        if self._tree is None:
            tree: Data = parse_json(self._source)
            self._tree = tree
            for entry in _list(tree, "Pods"):
                if isinstance(entry, dict):
                    namespace = entry.get(_field_name(entry, "Namespace")) or "default"
                    self._pods[f"{namespace}/{entry.get(_field_name(entry, 'Name'))}"] = entry
        return self._tree


def _field_name(tree: Data, name: str) -> str:
    """Return the document's name for a field, which may differ in case; the given name if there is no such field."""
    if name in tree:
        return name
    lower = name.lower()
    return next((key for key in tree if key.lower() == lower), name)


def _set(tree: Data, name: str, value: Any) -> None:
    tree[_field_name(tree, name)] = value


def _list(tree: Data, name: str) -> list[Any]:
    key = _field_name(tree, name)
    if not isinstance(tree.get(key), list):
        tree[key] = []
    found: list[Any] = tree[key]
    return found
