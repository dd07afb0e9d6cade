"""Profiles: which plugins judge, in which order, and how much their scores weigh.

`Profile.default()` is the default profile of Kubernetes 1.37. A profile is a value: engines are made from it.
"""

from __future__ import annotations

from typing import NamedTuple

from tutti.engine.plugins.base import Plugin
from tutti.engine.plugins.image_locality import ImageLocality
from tutti.engine.plugins.inter_pod_affinity import InterPodAffinity
from tutti.engine.plugins.node_affinity import NodeAffinity
from tutti.engine.plugins.node_ports import NodePorts
from tutti.engine.plugins.node_resources_balanced import NodeResourcesBalancedAllocation
from tutti.engine.plugins.node_resources_fit import NodeResourcesFit
from tutti.engine.plugins.node_rules import NodeName, NodeUnschedulable
from tutti.engine.plugins.node_volume_limits import NodeVolumeLimits
from tutti.engine.plugins.pod_topology_spread import PodTopologySpread
from tutti.engine.plugins.taint_toleration import TaintToleration
from tutti.engine.plugins.volume_binding import VolumeBinding
from tutti.engine.plugins.volume_restrictions import VolumeRestrictions
from tutti.engine.plugins.volume_zone import VolumeZone

DEFAULT_SCHEDULER = "default-scheduler"


class Enabled(NamedTuple):
    """A plugin with its part in the profile; weight 0 means that it does not score."""

    plugin: Plugin
    weight: int = 0
    filters: bool = True


class Profile(NamedTuple):
    """The plugins of one scheduler, in the order in which they filter."""

    plugins: tuple[Enabled, ...]
    scheduler_name: str = DEFAULT_SCHEDULER
    gates: bool = True
    """Whether SchedulingGates holds pods back."""
    preempts: bool = True
    """Whether DefaultPreemption evicts pods."""
    devices: bool = True
    """Whether DynamicResources looks at resource claims; Tutti refuses pods with claims then."""

    @staticmethod
    def default() -> Profile:
        """Give the default profile of Kubernetes 1.37."""
        return Profile(
            (
                Enabled(NodeName()),
                Enabled(NodeUnschedulable()),
                Enabled(TaintToleration(), 3),
                Enabled(NodeAffinity(), 2),
                Enabled(NodePorts()),
                Enabled(NodeResourcesFit(), 1),
                Enabled(VolumeRestrictions()),
                Enabled(NodeVolumeLimits()),
                Enabled(VolumeBinding(), 1),
                Enabled(VolumeZone()),
                Enabled(PodTopologySpread(), 2),
                Enabled(InterPodAffinity(), 2),
                Enabled(NodeResourcesBalancedAllocation(), 1),
                Enabled(ImageLocality(), 1),
            )
        )
