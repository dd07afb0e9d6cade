"""The picture of a cluster: columns, edits, rollback, holds, pod classes, tallies."""

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Edit, Hold, Put, PutTemplate, Release, Remove, Switch, Unbind

__all__ = ["Bind", "Cluster", "Edit", "Hold", "Put", "PutTemplate", "Release", "Remove", "Switch", "Unbind"]
