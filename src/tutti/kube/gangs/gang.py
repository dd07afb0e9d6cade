"""The data of a gang, the same for all dialects; frozen.

A gang is a group of pods with a minimum: at least this many pods start together, or none. A gang may have parts (roles,
slices, sub-groups) with their own minimums, and parts may have parts. A pod that names no group is a gang of one. A
`Gang` does not list its pods: each pod names its group (`Membership`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class DisruptionMode(StrEnum):
    """How a running gang may be evicted."""

    SINGLE = "single"
    """Pod by pod."""
    WHOLE = "whole"
    """The pods above the minimum one by one, the pods of the minimum together."""
    ALL = "all"
    """All members together."""


class GangTopology(msgspec.Struct, frozen=True, gc=False):
    """The node labels of which all members share one value."""

    required: str | None = None
    """All members run on nodes with one value of this label."""
    preferred: tuple[str, ...] = ()
    """Labels of which members share one value if possible, the narrowest label first."""


class GangPart(msgspec.Struct, frozen=True, gc=False):
    """A group of pods within a gang, with its own minimum."""

    name: str
    minimum: int = 0
    topology: GangTopology = GangTopology()
    parts: tuple[GangPart, ...] = ()
    parts_needed: int | None = None
    """How many parts must reach their minimum; None means all."""


class Gang(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The rules of a gang, as its group declares them."""

    key: str
    """``namespace/name``."""
    dialect: str
    minimum: int = 1
    maximum: int | None = None
    """The largest number of running members; further members stay pending."""
    topology: GangTopology = GangTopology()
    parts: tuple[GangPart, ...] = ()
    parts_needed: int | None = None
    """How many parts must reach their minimum; None means all."""
    disruption: DisruptionMode = DisruptionMode.WHOLE
    priority: int | None = None
    """None means the highest priority of the members."""
    preempts: bool | None = None
    """Whether the gang may evict other pods; None means that the preemption policies of the members decide."""
    created: int | None = None
    """The creation time in microseconds; None means that of the oldest member."""
    whole_since: int | None = None
    """When the gang first ran whole, in microseconds, if its group says so."""
    duration: int | None = None
    """The expected run time in microseconds, as the annotation tutti.dev/duration gives it."""
    is_counted: bool = False
    """Whether no object states the minimum, so that it is the number of unfinished pods."""
    is_being_deleted: bool = False
    """Whether an object that describes the gang is being deleted: no more pods are admitted."""
    problem: str | None = None
    """Why the gang cannot be scheduled in any cluster: its group is missing, or its declaration is invalid."""

    @property
    def refusal(self) -> str | None:
        """Why no more pods of the gang are admitted in any cluster: its problem, or the deletion of its group."""
        if self.problem is None and self.is_being_deleted:
            return f"the group {self.key} is being deleted: it admits no more pods"
        return self.problem


class Membership(msgspec.Struct, frozen=True, gc=False):
    """The group that a pod names."""

    dialect: str
    group: str
    """``namespace/name`` of the group; the group may be part of a larger gang (`reader.root_group`)."""
    part: str = ""
    """The part of the group that the pod names; empty if it names none."""
    problem: str | None = None
    """Why the membership is ambiguous: the pod names two groups or two parts."""
