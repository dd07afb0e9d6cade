"""The picture that plans are tried on: the cluster as it is, and nodes that join it.

Contract: `initialise` builds the cluster from a request and splits its pods: those with a node, those that a node was
promised (they count as placed there), those that wait, in the order of the scheduler's queue, and those that nobody
tries to place. `schedule_now` is for a binder that is somebody else: what fits is placed at once. `join` buys: it puts
a node of an offering into the cluster with the pods that its daemon sets would start there. Whatever is tried is undone
with a `Trial`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Put
from tutti.cluster.meter import Meter
from tutti.cluster.node_edits import belongs_to_node, companion, like
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import NotConsidered, Plan, Turn
from tutti.engine.session.queue_order import turns
from tutti.engine.session.schedule import schedule
from tutti.kube.objects import KINDS, CSINode, DaemonSet, Object, ObjectMeta, Pod
from tutti.market.node_daemons import daemon_pods_for
from tutti.market.offerings import Offering
from tutti.recommend.records.request import Request

_NOT_A_NAME = re.compile(r"[^a-z0-9.-]+")


class Picture:
    """See the module's contract."""

    def __init__(self, cluster: Cluster, daemon_sets: Sequence[DaemonSet], profile: Profile) -> None:
        self.cluster, self.profile = cluster, profile
        self.engine = Engine(cluster, profile)
        self.gangs = Gangs.of(cluster)
        self.turns: list[Turn] = []
        """Who waits, in order."""
        self.pending: list[str] = []
        """The pods of all turns, once each, in order."""
        self.promised: dict[str, str] = {}
        """Pods that were promised a node, with its name."""
        self.not_considered: list[NotConsidered] = []
        self._daemon_sets = daemon_sets
        self._daemons: dict[int, list[Pod]] = {}

    def split(self) -> None:
        """Find out who waits."""
        cluster = self.cluster
        pods = cluster.pods
        self.promised = {key: hold.node for key, hold in cluster.holds.items() if hold.node in cluster.nodes.row_of}
        for key, node in self.promised.items():
            cluster.apply(Bind(key, node))
        waiting = [key for key, row in pods.row_of.items() if pods.node_names[row] is None and key not in self.promised]
        daemons = [key for key in waiting if belongs_to_node(cluster.pod(key))]
        self.engine.place(daemons)  # on nodes that are there: nobody buys for them
        waiting = [key for key in waiting if not belongs_to_node(cluster.pod(key))]
        self.turns, self.not_considered = turns(cluster, self.gangs, waiting, profile=self.profile)
        self.pending = list(dict.fromkeys(key for turn in self.turns for key in turn.pods))

    def schedule_now(self) -> Plan:
        """Let the scheduler place whom it can on the nodes that are there; whoever gets a node counts as promised it.

        It does not wait for nodes that are yet to be bought: what fits now is bound long before they join.
        """
        plan = schedule(self.cluster, self.pending, self.profile, preemption=False)
        if not plan.binds:
            return plan
        self.promised |= {each.pod: each.node for each in plan.binds}
        waiting = [pod for pod in self.pending if pod not in self.promised]
        self.turns, _ = turns(self.cluster, self.gangs, waiting, profile=self.profile)
        self.pending = list(dict.fromkeys(key for turn in self.turns for key in turn.pods))
        return plan

    def join(self, offering: Offering, name: str) -> None:
        """Put a bought node into the cluster, with its daemons, and with what its volume drivers take."""
        self.cluster.apply(Put(like(offering.node, name)))
        if offering.csi is not None:
            self.cluster.apply(Put(CSINode(metadata=ObjectMeta(name=name), spec=offering.csi)))
        for pod in self.daemons(offering):
            self.cluster.apply(Put(companion(pod, name)))

    def join_all(self, offerings: Iterable[Offering]) -> list[str]:
        """Buy one node of each; give their names."""
        names = []
        numbers: dict[str, int] = {}
        for offering in offerings:
            name = self.name_of(offering, numbers)
            self.join(offering, name)
            names.append(name)
        return names

    def name_of(self, offering: Offering, numbers: dict[str, int]) -> str:
        """A name for the next node of an offering; `numbers` counts those that were given."""
        prefix = "-".join(part for part in (offering.pool, offering.zone, "new") if part).lower()
        prefix = _NOT_A_NAME.sub("-", prefix)
        while True:
            numbers[prefix] = numbers.get(prefix, 0) + 1
            name = f"{prefix}-{numbers[prefix]}"
            if name not in self.cluster.nodes.row_of:
                return name

    def daemons(self, offering: Offering) -> list[Pod]:
        """The pods that a node of an offering runs from the start."""
        known = self._daemons.get(id(offering))
        if known is None:
            known = self._daemons[id(offering)] = daemon_pods_for(self._daemon_sets, offering.node)
        return known


def initialise(request: Request, profile: Profile | None = None, *, meter: Meter | None = None) -> Picture:
    """Build the picture of a request; what is done on it is counted by the meter."""
    by_kind: dict[str, list[Object]] = {kind: [] for kind in KINDS}
    for obj in request.objects:
        by_kind[obj.KIND].append(obj)
    cluster = Cluster((obj for objects in by_kind.values() for obj in objects), meter=meter)
    picture = Picture(cluster, request.daemon_sets, profile or Profile.default())
    picture.split()
    return picture


def with_places(request: Request, where: Mapping[str, str]) -> Request:
    """The request with pods on the nodes that they were promised."""
    if not where:
        return request
    objects = [
        replace(obj, spec=replace(obj.spec, node_name=where[obj.key]))
        if isinstance(obj, Pod) and obj.key in where
        else obj
        for obj in request.objects
    ]
    return replace(request, objects=tuple(objects))
