"""What happens to a cluster, counted: who waits for something to happen looks whether its count has moved.

The kinds are those by which kube-scheduler's plugins say what could cure their refusals. Counts only move by edits that
stay: what a rollback undoes has not happened.
"""

from __future__ import annotations

from enum import IntEnum

from tutti.kube.objects import Node, Pod


class Event(IntEnum):
    """Something that may let a waiting pod fit."""

    NODE_ADDED = 0
    NODE_ROOM = 1
    """A node offers something else than before."""
    NODE_LABELS = 2
    NODE_TAINTS = 3
    """A node's taints changed, or it was cordoned or uncordoned."""
    NODE_GONE = 4
    POD_PLACED = 5
    """A pod came to a node."""
    POD_GONE = 6
    """A pod left its node, began to terminate, or gave up room that was held for it."""
    VOLUMES = 7
    """A volume, a claim, or something about storage changed."""
    OBJECTS = 8
    """Another object changed: a service, a namespace, a budget, a group."""


EVERY = frozenset(Event)
_VOLUMES = frozenset((
    "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "PersistentVolume",
    "PersistentVolumeClaim",
))  # fmt: skip


def node_changes(old: Node, new: Node) -> list[Event]:
    """Say what is new about a node."""
    changes = []
    if old.status.allocatable != new.status.allocatable or old.status.capacity != new.status.capacity:
        changes.append(Event.NODE_ROOM)
    if old.metadata.labels != new.metadata.labels:
        changes.append(Event.NODE_LABELS)
    if old.spec.taints != new.spec.taints or old.spec.unschedulable != new.spec.unschedulable:
        changes.append(Event.NODE_TAINTS)
    return changes


def is_no_news(old: Pod, new: Pod) -> bool:
    """Say whether an update of a pod tells the scheduler nothing; most are about its status."""
    was, now = old.metadata, new.metadata
    leaving = (was.deletion_timestamp is None) == (now.deletion_timestamp is None)
    same = was.labels == now.labels and was.annotations == now.annotations
    promised = old.status.nominated_node_name == new.status.nominated_node_name
    return leaving and same and promised and old.spec == new.spec and was.owner_references == now.owner_references


def object_change(kind: str) -> Event:
    """Say what the change of an object that is neither node nor pod is."""
    return Event.VOLUMES if kind in _VOLUMES else Event.OBJECTS
