"""Random clusters and random edits of every kind, from a seed: small, with as many special cases as possible."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from tests.support.builders import HOSTNAME, ZONE, disruption_budget, owner_reference
from tests.support.volumes import bound_volume, selected_claim
from tutti.cluster.assumed_volumes import SELECTED_NODE
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import AssumeVolume, Bind, Edit, Hold, Put, PutTemplate, Release, Remove, Switch, Unbind
from tutti.kube import objects as k

ZONES = ("a", "b", "c")
APPS = ("web", "db", "train")
NAMESPACES = ("default", "prod")
IMAGES = ("registry.example/web:v1", "registry.example/train:v2")


class RandomCluster:
    """Draws the objects of a cluster and edits of it; the same seed draws the same ones.

    With `assumptions`, edits assume volumes and claims, as a session does for the pods that it binds.
    """

    def __init__(self, seed: int, *, nodes: int = 6, ports: bool = True, assumptions: bool = False) -> None:
        self.random = random.Random(seed)
        self.nodes = nodes
        self.ports = ports
        self.assumptions = assumptions
        self._pods = 0

    def objects(self, pods: int = 12) -> Iterator[k.Object]:
        """The objects of the cluster before any edit."""
        for name in NAMESPACES:
            yield self.namespace(name)
        for name in ("fast", "wait"):
            mode = "WaitForFirstConsumer" if name == "wait" else "Immediate"
            yield k.StorageClass(metadata=k.ObjectMeta(name=name), provisioner="disk.example", volume_binding_mode=mode)
        for number in range(self.nodes - 1):
            yield self.node(f"node-{number}")
        yield self.service()
        yield self.replica_set()
        yield self.volume()
        yield self.claim()
        for _ in range(pods):
            yield self.pod()

    # Objects ----------------------------------------------------------------------------------------------------------

    def node(self, name: str) -> k.Node:
        draw = self.random
        labels = {HOSTNAME: name, ZONE: draw.choice(ZONES)}
        if draw.random() < 0.15:
            del labels[ZONE]
        if draw.random() < 0.5:
            labels["disk"] = draw.choice(("ssd", "hdd"))
        taints = [k.Taint(key="dedicated", value="ml", effect=draw.choice(("NoSchedule", "PreferNoSchedule")))]
        size = {
            "cpu": draw.choice(("2", "4")),
            "memory": draw.choice(("4Gi", "8Gi")),
            "pods": draw.choice(("4", "110")),
        }
        if draw.random() < 0.3:
            size["example.com/gpu"] = "2"
        images = [k.NodeImage(names=[image], size_bytes=600_000_000) for image in IMAGES if draw.random() < 0.3]
        return k.Node(
            metadata=k.ObjectMeta(name=name, labels=labels),
            spec=k.NodeSpec(unschedulable=draw.random() < 0.1 or None, taints=taints if draw.random() < 0.3 else None),
            status=k.NodeStatus(allocatable=size, images=images),
        )

    def pod(self, key: str | None = None) -> k.Pod:
        draw = self.random
        if key is None:
            self._pods += 1
            key = f"{draw.choice(NAMESPACES)}/pod-{self._pods}"
        namespace, name = key.split("/")
        app = draw.choice(APPS)
        bound = draw.random() < 0.5
        meta = k.ObjectMeta(
            name=name, namespace=namespace, uid=f"uid-{name}", labels={"app": app, "unique": name},
            creation_timestamp="2026-01-01T00:00:00Z",
            deletion_timestamp="2026-01-02T00:00:00Z" if draw.random() < 0.1 else None,
            owner_references=self._owner(app),
        )  # fmt: skip
        status = k.PodStatus(
            phase="Failed" if draw.random() < 0.03 else "Pending",
            start_time=f"2026-01-01T00:{draw.randrange(60):02}:00Z" if bound else None,
            nominated_node_name=self._some_node() if not bound and draw.random() < 0.2 else None,
        )
        return k.Pod(metadata=meta, spec=self._spec(app, bound=bound), status=status)

    def _spec(self, app: str, *, bound: bool) -> k.PodSpec:
        draw = self.random
        requests: k.Quantities = {"cpu": draw.choice(("100m", "500m", "1")), "memory": draw.choice(("256Mi", "1Gi"))}
        if draw.random() < 0.15:
            requests["example.com/gpu"] = 1
        if draw.random() < 0.1:
            requests = {}
        ports = (
            [k.ContainerPort(container_port=80, host_port=8080)]
            if self.ports and not bound and draw.random() < 0.1
            else None
        )
        container = k.Container(
            name="main", image=draw.choice(IMAGES), resources=k.ResourceRequirements(requests=requests), ports=ports
        )
        return k.PodSpec(
            containers=[container],
            node_name=self._some_node() if bound else None,
            priority=draw.choice((0, 0, 10, 100)),
            node_selector={"disk": "ssd"} if draw.random() < 0.1 else None,
            tolerations=[k.Toleration(key="dedicated", operator="Exists")] if draw.random() < 0.3 else None,
            affinity=self._affinity(app) if draw.random() < 0.4 else None,
            topology_spread_constraints=[self._spread(app)] if draw.random() < 0.25 else None,
            volumes=[k.Volume(name="v", persistent_volume_claim=k.ClaimVolume(claim_name="claim-1"))]
            if draw.random() < 0.1
            else None,
            scheduling_gates=[k.SchedulingGate(name="wait")] if draw.random() < 0.05 else None,
        )

    def _affinity(self, app: str) -> k.Affinity:
        draw = self.random
        own = k.LabelSelector(match_labels={"app": draw.choice((app, draw.choice(APPS)))})
        scope = k.LabelSelector(match_labels={"team": "red"}) if draw.random() < 0.3 else None
        term = k.PodAffinityTerm(
            label_selector=own, topology_key=draw.choice((HOSTNAME, ZONE)), namespace_selector=scope
        )
        wish = k.WeightedPodAffinityTerm(weight=draw.randrange(1, 100), pod_affinity_term=term)
        match draw.randrange(4):
            case 0:
                return k.Affinity(pod_anti_affinity=k.PodAffinity(required=[term]))
            case 1:
                return k.Affinity(pod_affinity=k.PodAffinity(required=[term]))
            case 2:
                return k.Affinity(pod_anti_affinity=k.PodAffinity(preferred=[wish]))
            case _:
                preferred = k.PreferredSchedulingTerm(
                    weight=5,
                    preference=k.NodeSelectorTerm(
                        match_expressions=[k.LabelSelectorRequirement(key="disk", operator="Exists")]
                    ),
                )
                return k.Affinity(
                    pod_affinity=k.PodAffinity(preferred=[wish]), node_affinity=k.NodeAffinity(preferred=[preferred])
                )

    def _spread(self, app: str) -> k.TopologySpreadConstraint:
        draw = self.random
        return k.TopologySpreadConstraint(
            max_skew=draw.randrange(1, 3),
            topology_key=draw.choice((HOSTNAME, ZONE)),
            when_unsatisfiable=draw.choice(("DoNotSchedule", "ScheduleAnyway")),
            label_selector=draw.choice((k.LabelSelector(match_labels={"app": app}), k.LabelSelector(), None)),
            node_taints_policy=draw.choice((None, "Honor")),
        )

    def _owner(self, app: str) -> list[k.OwnerReference] | None:
        if self.random.random() < 0.7:
            return None
        return [owner_reference("ReplicaSet", app)]

    def namespace(self, name: str) -> k.Namespace:
        return k.Namespace(metadata=k.ObjectMeta(name=name, labels={"team": self.random.choice(("red", "blue"))}))

    def service(self) -> k.Service:
        app, namespace = self.random.choice(APPS), self.random.choice(NAMESPACES)
        return k.Service(
            metadata=k.ObjectMeta(name=f"svc-{app}", namespace=namespace), spec=k.ServiceSpec(selector={"app": app})
        )

    def replica_set(self) -> k.ReplicaSet:
        app, namespace = self.random.choice(APPS), self.random.choice(NAMESPACES)
        return k.ReplicaSet(
            metadata=k.ObjectMeta(name=app, namespace=namespace),
            spec=k.WorkloadSpec(selector=k.LabelSelector(match_labels={"app": app})),
        )

    def budget(self) -> k.PodDisruptionBudget:
        app, namespace = self.random.choice(APPS), self.random.choice(NAMESPACES)
        return disruption_budget(app, self.random.randrange(3), name=f"pdb-{app}", namespace=namespace)

    def volume(self) -> k.PersistentVolume:
        return k.PersistentVolume(
            metadata=k.ObjectMeta(name="volume-1", labels={ZONE: self.random.choice(ZONES)}),
            spec=k.VolumeSpec(capacity={"storage": "1Gi"}, access_modes=["ReadWriteOnce"], storage_class_name="wait"),
            status=k.ClaimStatus(phase="Available"),
        )

    def claim(self) -> k.PersistentVolumeClaim:
        bound = self.random.random() < 0.5
        return k.PersistentVolumeClaim(
            metadata=k.ObjectMeta(
                name="claim-1", namespace=self.random.choice(NAMESPACES), uid="claim-1",
                annotations={"pv.kubernetes.io/bind-completed": "yes"} if bound else None,
            ),
            spec=k.ClaimSpec(
                storage_class_name="wait", access_modes=["ReadWriteOnce"], volume_name="volume-1" if bound else None,
                resources=k.ResourceRequirements(requests={"storage": "1Gi"}),
            ),
        )  # fmt: skip

    def _assumption(self, cluster: Cluster, pod: str) -> Edit:
        """An assumption for a pod on a node, about the volume or a claim; a cluster without them gets the volume."""
        known = [
            obj for kind in ("PersistentVolume", "PersistentVolumeClaim") for obj in cluster.objects[kind].values()
        ]
        obj = self.random.choice(known) if known else self.volume()
        if isinstance(obj, k.PersistentVolumeClaim):
            selected = (obj.metadata.annotations or {}).get(SELECTED_NODE)
            return AssumeVolume(selected_claim(obj, selected or self._some_node()), pod)
        assert isinstance(obj, k.PersistentVolume)
        return AssumeVolume(bound_volume(obj, "claim-1"), pod) if known else Put(obj)

    def _some_node(self) -> str:
        return f"node-{self.random.randrange(self.nodes)}"

    # Edits ------------------------------------------------------------------------------------------------------------

    def edit(self, cluster: Cluster) -> Edit:
        """An edit that the cluster accepts."""
        draw = self.random
        pending = sorted(key for key, row in cluster.pods.row_of.items() if cluster.pods.node_names[row] is None)
        placed = sorted(key for key, row in cluster.pods.row_of.items() if cluster.pods.node_names[row] is not None)
        anyone = sorted(cluster.pods.row_of)
        match draw.randrange(16):
            case 0 | 1:
                return Put(self.node(self._some_node()))
            case 2:
                return Remove("Node", self._some_node())
            case 3:
                name = self._some_node()
                if name not in cluster.nodes.row_of:
                    return PutTemplate(self.node(name))
                return Switch(name, on=draw.random() < 0.6)
            case 4 | 5:
                return Put(self.pod())
            case 6 if anyone:
                return Put(self.pod(draw.choice(anyone)))
            case 7 if anyone:
                return Remove("Pod", draw.choice(anyone))
            case 8 if pending:
                return Bind(draw.choice(pending), self._some_node(), draw.choice((None, 1_700_000_000_000_000)))
            case 9 if placed:
                return Unbind(draw.choice(placed), keep_volumes=self.assumptions and draw.random() < 0.2)
            case 10 if pending:
                return Hold(draw.choice(pending), self._some_node())
            case 11 if pending:
                return Release(draw.choice(pending))
            case 12:
                return Put(self.namespace(draw.choice(NAMESPACES)))
            case 13:
                made = draw.choice((self.service, self.replica_set, self.budget))()
                return Put(made) if draw.random() < 0.6 else Remove(made.KIND, made.key)
            case 14 if self.assumptions and placed and draw.random() < 0.5:
                return self._assumption(cluster, draw.choice(placed))
            case 14:
                made = draw.choice((self.volume, self.claim))()
                return Put(made) if draw.random() < 0.7 else Remove(made.KIND, made.key)
            case _ if anyone:
                row = cluster.pods.row_of[draw.choice(anyone)]
                pod = cluster.pods.objects[row]
                assert pod is not None
                meta = msgspec.structs.replace(
                    pod.metadata,
                    labels={"app": draw.choice(APPS), "unique": pod.metadata.name},
                    deletion_timestamp=draw.choice((None, "2026-01-02T00:00:00Z")),
                )
                return Put(msgspec.structs.replace(pod, metadata=meta))
            case _:
                return Put(self.pod())
