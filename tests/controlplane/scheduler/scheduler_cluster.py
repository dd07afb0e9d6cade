"""The cluster of one test of the scheduler: its objects, what became of its pods, what the scheduler requested.

Contract: a test has a namespace of its own, and the nodes that it adds are the only ones. `clear` removes all of it,
and the scheduler's lease. Waiting ends by a success or with a list of the pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.controlplane.audit_log import AuditEntry, read_audit_log
from tests.controlplane.cluster_setup import JOBS, NODES, eventually, make_nodes, make_pods, send
from tests.controlplane.manifests import ready_node
from tests.controlplane.scheduler.example_objects import apply, example_objects
from tests.support.documents import Document
from tutti.client.api_client import ApiClient
from tutti.client.resources import LEASES, PODS, Resource
from tutti.exceptions import ApiError

SCHEDULER = "system:serviceaccount:kube-system:tutti-scheduler"
VOLUMES = Resource("", "v1", "persistentvolumes", False, "PersistentVolume")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", True, "PersistentVolumeClaim")
_READS = ("get", "list", "watch")
_REVIEWS = ("tokenreviews", "subjectaccessreviews")


@dataclass
class SchedulerCluster:
    """See the module's docstring; `client` is an administrator's."""

    client: ApiClient
    namespace: str
    audit_log: Path
    audit_offset: int
    """Where the requests of this test begin in the audit log."""
    rights_offset: int = 0
    """Where the requests begin of which none may be refused."""

    # Objects ----------------------------------------------------------------------------------------------------------

    async def add_nodes(self, *names: str, cpu: str = "2") -> None:
        """Add nodes that are ready."""
        await make_nodes(self.client, [ready_node(name, cpu=cpu, memory="32Gi") for name in names])

    async def add_pods(self, pods: Sequence[Document]) -> list[str]:
        """Create pods; return their names."""
        return [pod["metadata"]["name"] for pod in await make_pods(self.client, pods)]

    async def apply_example(self, name: str, *, only: Collection[str] = ()) -> None:
        """Apply a file of `examples/live`, or only its objects of these names."""
        documents = [each for each in example_objects(name) if not only or each["metadata"]["name"] in only]
        await apply(self.client, documents, namespace=self.namespace)

    async def delete_job(self, name: str) -> None:
        """Delete a Job with its pods."""
        options = {"propagationPolicy": "Background"}
        await send(self.client, "DELETE", JOBS.path(self.namespace, name), options)

    async def delete_pods(self, names: Collection[str]) -> None:
        """Delete pods at once."""
        for name in names:
            await send(self.client, "DELETE", PODS.path(self.namespace, name), {"gracePeriodSeconds": 0})

    async def lease(self) -> Document:
        """Return the spec of the scheduler's lease."""
        stored = await send(self.client, "GET", LEASES.path("kube-system", "tutti-scheduler"))
        spec: Document = stored["spec"]
        return spec

    async def clear(self) -> None:
        """Remove everything that a test has made, but for its namespace."""
        at_once = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        await send(self.client, "DELETE", JOBS.path(self.namespace), at_once)
        for resource in (PODS, CLAIMS, VOLUMES, NODES):
            # Finalizers keep claims and volumes for a moment, and a controller may have made one more pod.
            path = resource.path(self.namespace)
            await eventually(partial(self._is_removed, path, at_once), f"all {resource.name} are gone")
        try:
            await send(self.client, "DELETE", LEASES.path("kube-system", "tutti-scheduler"))
        except ApiError as error:
            if error.status != 404:
                raise

    async def _is_removed(self, path: str, options: Document) -> bool:
        await send(self.client, "DELETE", path, options)
        return not (await send(self.client, "GET", path))["items"]

    # Pods -------------------------------------------------------------------------------------------------------------

    async def pods(self) -> dict[str, Document]:
        """Return the pods by name."""
        items = (await send(self.client, "GET", PODS.path(self.namespace)))["items"]
        return {pod["metadata"]["name"]: pod for pod in items}

    async def job_pods(self, job: str) -> dict[str, Document]:
        """Return the pods of a Job by name, without those that are being deleted."""
        return {name: pod for name, pod in (await self.pods()).items() if _job(pod) == job and not _is_leaving(pod)}

    async def bound(self) -> set[str]:
        """Return the names of the pods that have a node."""
        return {name for name, pod in (await self.pods()).items() if node_of(pod)}

    async def until_bound(self, names: Collection[str]) -> dict[str, str]:
        """Wait until these pods have nodes; return the nodes by name."""
        pods = await self.until(lambda pods: all(node_of(pods[name]) for name in names), f"{sorted(names)} are bound")
        return {name: node_of(pods[name]) for name in names}

    async def until_waiting(self, names: Collection[str], reason: str, *, message: str = "") -> str:
        """Wait until these pods are told this reason and a message with this text; return one of the messages.

        None of them may be bound. Pods that are created one after the other are first told of those that exist by then.
        """

        def are_told(pods: dict[str, Document]) -> bool:
            told = [waiting_reason(pods[name]) for name in names]
            return all(found == reason and message in text for found, text in told)

        pods = await self.until(are_told, f"{sorted(names)} wait with {reason} {message}")
        assert not {name for name in names if node_of(pods[name])}
        return waiting_reason(pods[min(names)])[1]

    async def until_job_runs(self, job: str, *, pods: int) -> None:
        """Wait until all pods of a Job run."""

        def run(found: dict[str, Document]) -> bool:
            phases = [pod["status"]["phase"] for pod in found.values() if _job(pod) == job and not _is_leaving(pod)]
            return phases == ["Running"] * pods

        await self.until(run, f"{pods} pods of {job} run")

    async def until(self, question: Callable[[dict[str, Document]], bool], what: str) -> dict[str, Document]:
        """Wait until the pods, by name, are as expected; return them."""

        async def answer() -> dict[str, Document] | None:
            nonlocal pods
            pods = await self.pods()
            return pods if question(pods) else None

        pods: dict[str, Document] = {}
        try:
            return await eventually(answer, what)
        except AssertionError as error:
            lines = [f"{name}: {node_of(pod) or waiting_reason(pod)}" for name, pod in pods.items()]
            raise AssertionError("\n".join([str(error), *lines])) from None

    # Requests ---------------------------------------------------------------------------------------------------------

    def requests(self) -> list[AuditEntry]:
        """Return the requests of the scheduler's service account in this test."""
        entries = read_audit_log(self.audit_log, offset=self.audit_offset)
        return [entry for entry in entries if entry.user.username == SCHEDULER]

    def writes(self) -> list[AuditEntry]:
        """Return the requests of the scheduler that change the cluster."""
        return [e for e in self.requests() if e.verb not in _READS and e.object_ref.resource not in _REVIEWS]

    def bindings(self) -> list[str]:
        """Return the uids of the pods whose bindings the server accepted, in order."""
        return [
            entry.request_object["metadata"]["uid"]
            for entry in self.writes()
            if entry.object_ref.subresource == "binding" and entry.response_status.code == 201
        ]

    def forgive_refusals(self) -> None:
        """Ignore requests that were refused until now: an API server that starts does not know any rights at first."""
        self.rights_offset = self.audit_log.stat().st_size

    def check_rights(self) -> None:
        """Fail if the scheduler was not allowed to send a request that it sent."""
        entries = read_audit_log(self.audit_log, offset=max(self.audit_offset, self.rights_offset))
        refused = [
            f"{entry.verb} {entry.request_uri}"
            for entry in entries
            if entry.user.username == SCHEDULER and entry.response_status.code in (401, 403)
        ]
        assert not refused, f"examples/live/rbac.yaml lacks rights: {refused}"


def node_of(pod: Document) -> str:
    """Return the node of a pod, empty if it has none."""
    return str(pod["spec"].get("nodeName", ""))


def waiting_reason(pod: Document) -> tuple[str, str]:
    """Return reason and message of a pod that is told why it waits."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason", ""), condition.get("message", "")
    return "", ""


def _job(pod: Document) -> str:
    return str(pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", ""))


def _is_leaving(pod: Document) -> bool:
    return "deletionTimestamp" in pod["metadata"]
