"""Profiles: which plugins are enabled, in which order, and with which weights.

A profile is a value; engines on different clusters can share one. `Profile.default()` is the default profile of
Kubernetes 1.37.
"""

from __future__ import annotations

from typing import NamedTuple

from tutti.engine.plugins.base import Plugin
from tutti.engine.plugins.image_locality import ImageLocality
from tutti.engine.plugins.inter_pod_affinity import InterPodAffinity
from tutti.engine.plugins.node_affinity import NodeAffinityPlugin
from tutti.engine.plugins.node_declared_features import NodeDeclaredFeatures
from tutti.engine.plugins.node_name import NodeName
from tutti.engine.plugins.node_ports import NodePorts
from tutti.engine.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tutti.engine.plugins.node_resources_fit import NodeResourcesFit
from tutti.engine.plugins.node_unschedulable import NodeUnschedulable
from tutti.engine.plugins.node_volume_limits import NodeVolumeLimits
from tutti.engine.plugins.pod_topology_spread import PodTopologySpread
from tutti.engine.plugins.taint_toleration import TaintToleration
from tutti.engine.plugins.volume_binding import VolumeBinding
from tutti.engine.plugins.volume_restrictions import VolumeRestrictions
from tutti.engine.plugins.volume_zone import VolumeZone

DEFAULT_SCHEDULER = "default-scheduler"


class EnabledPlugin(NamedTuple):
    """A plugin of a profile; weight 0 means that the plugin does not score."""

    plugin: Plugin
    weight: int = 0
    filters: bool = True


class Profile(NamedTuple):
    """The plugins of one scheduler, in filter order."""

    plugins: tuple[EnabledPlugin, ...]
    scheduler_name: str = DEFAULT_SCHEDULER
    gates: bool = True
    """Whether SchedulingGates keeps gated pods from being scheduled."""
    preempts: bool = True
    """Whether DefaultPreemption evicts pods."""
    devices: bool = True
    """Whether DynamicResources handles resource claims; if so, Tutti refuses pods with claims."""

    @staticmethod
    def default() -> Profile:
        """Return the default profile of Kubernetes 1.37."""
        return Profile(
            (
                EnabledPlugin(NodeName()),
                EnabledPlugin(NodeUnschedulable()),
                EnabledPlugin(TaintToleration(), 3),
                EnabledPlugin(NodeAffinityPlugin(), 2),
                EnabledPlugin(NodePorts()),
                EnabledPlugin(NodeResourcesFit(), 1),
                EnabledPlugin(VolumeRestrictions()),
                EnabledPlugin(NodeVolumeLimits()),
                EnabledPlugin(VolumeBinding(), 1),
                EnabledPlugin(VolumeZone()),
                EnabledPlugin(PodTopologySpread(), 2),
                EnabledPlugin(InterPodAffinity(), 2),
                EnabledPlugin(NodeDeclaredFeatures()),
                EnabledPlugin(NodeResourcesBalancedAllocation(), 1),
                EnabledPlugin(ImageLocality(), 1),
            )
        )
