"""Events: counters of changes that may let a waiting pod fit.

A waiting pod is retried when a relevant event counter has changed. The kinds follow the events that kube-scheduler's
plugins register (EventsToRegister). A rollback restores the counters, so undone edits leave no event.
"""

from __future__ import annotations

from enum import IntEnum

from tutti.kube.objects import Node


class Event(IntEnum):
    """A kind of change that may let a waiting pod fit."""

    NODE_ADDED = 0
    NODE_ALLOCATABLE = 1
    """A node's allocatable resources or capacity changed."""
    NODE_LABELS = 2
    NODE_TAINTS = 3
    """A node's taints changed, or the node was cordoned or uncordoned."""
    NODE_REMOVED = 4
    POD_PLACED = 5
    """A pod was assigned to a node."""
    POD_REMOVED = 6
    """A pod left its node, began to terminate, or released its hold."""
    VOLUMES = 7
    """A volume, a claim or another storage object changed."""
    OBJECTS = 8
    """Another object changed: a Service, a namespace, a disruption budget, a pod group."""
    NODE_FEATURES = 9
    """A node's declared features changed."""


ALL_EVENTS = frozenset(Event)
_VOLUME_KINDS = frozenset((
    "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "PersistentVolume",
    "PersistentVolumeClaim",
))  # fmt: skip


def node_change_events(old: Node, new: Node) -> list[Event]:
    """Return the events that an update of a node causes."""
    changes = []
    if old.status.allocatable != new.status.allocatable or old.status.capacity != new.status.capacity:
        changes.append(Event.NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        changes.append(Event.NODE_LABELS)
    if old.spec.taints != new.spec.taints or old.spec.unschedulable != new.spec.unschedulable:
        changes.append(Event.NODE_TAINTS)
    if old.status.declared_features != new.status.declared_features:
        changes.append(Event.NODE_FEATURES)
    return changes


def object_change_event(kind: str) -> Event:
    """Return the event that a change of an object other than a node or a pod causes."""
    return Event.VOLUMES if kind in _VOLUME_KINDS else Event.OBJECTS
