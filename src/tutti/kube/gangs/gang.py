"""What a gang is, whatever dialect it is written in; all of it frozen data.

A gang is a group of pods with a minimum: at least so many start together, or none. It may have parts (roles, slices,
sub-groups) with minimums of their own, and parts of parts. A pod that names no group is a gang of one. Which pods
belong to a gang is not said here: pods name their group (`Membership`), and a gang's record is what its group says.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class DisruptionMode(StrEnum):
    """How a running gang may be evicted."""

    SINGLE = "single"
    """Pod by pod."""
    WHOLE = "whole"
    """Members above the minimum one by one, the others together."""
    ALL = "all"
    """All members together."""


class GangTopology(msgspec.Struct, frozen=True, gc=False):
    """How near to each other members are to run: node labels whose values they share."""

    required: str | None = None
    """All members run where this label has one value."""
    preferred: tuple[str, ...] = ()
    """The same if one value has room, the narrowest label first; otherwise anywhere."""


class GangPart(msgspec.Struct, frozen=True, gc=False):
    """Some members of a gang, with a minimum of their own."""

    name: str
    minimum: int = 0
    topology: GangTopology = GangTopology()
    parts: tuple[GangPart, ...] = ()
    parts_needed: int | None = None
    """How many of the parts must reach their minimum; None stands for all."""


class Gang(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a group says of its pods."""

    key: str
    """``namespace/name``."""
    dialect: str
    minimum: int = 1
    maximum: int | None = None
    """Members above this number stay pending."""
    topology: GangTopology = GangTopology()
    parts: tuple[GangPart, ...] = ()
    parts_needed: int | None = None
    """How many of the parts must reach their minimum; None stands for all."""
    disruption: DisruptionMode = DisruptionMode.WHOLE
    priority: int | None = None
    """None stands for the highest of the members'."""
    preempts: bool | None = None
    """Whether it may evict others; None stands for what the members say."""
    created: int | None = None
    """In microseconds; None stands for the oldest member's creation."""
    duration: int | None = None
    """How long it runs, in microseconds, as far as its owner knows."""
    problem: str | None = None
    """Why it cannot be scheduled, whatever the cluster: its group is missing, or it contradicts itself."""


class Membership(msgspec.Struct, frozen=True, gc=False):
    """Which group a pod names."""

    dialect: str
    group: str
    """``namespace/name`` of the group that the pod names; a group may be part of a larger one (`reader.root`)."""
    part: str = ""
    """The part of the group that the pod is in, if it names one."""
    problem: str | None = None
    """Why the pod cannot say which group it is in: it names two."""
