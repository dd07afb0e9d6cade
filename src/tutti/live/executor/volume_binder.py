"""Volumes before pods: writes the volumes that a plan binds or provisions, and waits until the claims are bound.

As in kube-scheduler, a chosen PersistentVolume gets a reference to its claim, and a claim to provision gets the node;
the volume controller and the provisioner do the rest, which may take minutes. Each write carries the version that the
session saw, so that nobody else's change is overwritten.

Contract: `bind` returns why the volumes cannot be bound, or None when all claims are bound to volumes that the nodes
reach. Claims that were written stay so after a failure: the provisioner may be at work. They keep the pod on that node,
as in kube-scheduler; `pinned_claims` tells users.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.backoff import Backoff
from tutti.client.resources import Resource
from tutti.cluster.assumed_volumes import BOUND_BY_CONTROLLER, SELECTED_NODE
from tutti.cluster.edits import AssumeVolume
from tutti.cluster.object_versions import is_older, version_of
from tutti.engine.plugins.volumes import migrated_driver
from tutti.engine.session.plan import Bound
from tutti.exceptions import ApiError, InputError
from tutti.kube.objects import Object, PersistentVolume, PersistentVolumeClaim
from tutti.kube.reading.decode import decode_object
from tutti.kube.reading.sources import Source
from tutti.kube.selectors import parse_node_selector
from tutti.live.newest_objects import NewestObjects

_VOLUMES = Resource("", "v1", "persistentvolumes", False, PersistentVolume.KIND)
_CLAIMS = Resource("", "v1", "persistentvolumeclaims", True, PersistentVolumeClaim.KIND)
_SOURCE = Source("volumes", b"")
_TRANSIENT = frozenset((0, 408, 429, 500, 502, 503, 504))
_RETRY_FOR = 10.0
_BOUND_WITHIN = 600.0
"""Seconds that claims may take to be bound, as in kube-scheduler."""
_LOOK_EVERY = 0.1


class VolumeProblem(NamedTuple):
    """Why the volumes of some pods cannot be bound."""

    message: str
    refused_pod: str | None = None
    """The pod that needs another node: a provisioner found no room for this one, or made a volume out of its reach."""


class VolumeBinder:
    """See the module's docstring."""

    def __init__(
        self,
        client: ApiClient,
        newest: NewestObjects,
        *,
        may_write: Callable[[], bool],
        monotonic: Callable[[], float],
        draw: random.Random,
    ) -> None:
        self._client, self._newest, self._may_write = client, newest, may_write
        self._monotonic, self._draw = monotonic, draw

    async def bind(self, binds: Iterable[Bound]) -> VolumeProblem | None:
        """Write the volumes of some pods and wait for their claims; return why that failed."""
        changes = [(bound, edit.obj) for bound in binds for edit in bound.volumes if isinstance(edit, AssumeVolume)]
        versions: dict[str, int | None] = {}
        for bound, obj in changes:
            written = await self._write(bound, obj)
            if isinstance(written, str):
                return VolumeProblem(written)
            versions[obj.key] = version_of(written.metadata)
        return await self._wait(changes, versions)

    async def _write(self, bound: Bound, obj: Object) -> Object | str:
        """Write a volume or a claim; return the object as the server has it, or why that failed."""
        version = obj.metadata.resource_version
        change: dict[str, Any] = {"metadata": {"resourceVersion": version, "uid": obj.metadata.uid}}
        if isinstance(obj, PersistentVolume):
            claim = obj.spec.claim_ref
            assert claim is not None
            path = _VOLUMES.path("", obj.metadata.name)
            reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
            change["spec"] = {"claimRef": reference | msgspec.to_builtins(claim)}
            if BOUND_BY_CONTROLLER in (obj.metadata.annotations or {}):
                change["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        else:
            path = _CLAIMS.path(obj.metadata.namespace or "", obj.metadata.name)
            change["metadata"]["annotations"] = {SELECTED_NODE: bound.node}
        backoff, give_up = Backoff(self._draw, first=0.1, longest=2.0), self._monotonic() + _RETRY_FOR
        body, is_answer_lost = msgspec.json.encode(change), False
        while True:
            if not self._may_write():
                return "this process does not lead any more"
            try:
                reply = await self._client.request("PATCH", path, body, content_type=MERGE_PATCH, timeout=5.0)
                return decode_object(reply, obj.KIND, source=_SOURCE)
            except ApiError as error:
                if error.status == 409 and is_answer_lost:  # perhaps with our own write
                    found = await self._find_written(path, obj)
                    if found is not None:
                        return found
                if error.status not in _TRANSIENT or self._monotonic() >= give_up:
                    return f"the {obj.KIND} {obj.key} cannot be bound: {error}"
                is_answer_lost = is_answer_lost or not error.status
                await asyncio.sleep(backoff.next(error.retry_after))
            except InputError as error:
                return f"the {obj.KIND} {obj.key} cannot be read: {error}"

    async def _find_written(self, path: str, planned: Object) -> Object | None:
        """Return an object as the server has it, if it says what the plan wants."""
        try:
            found = decode_object(await self._client.read(path, timeout=5.0), planned.KIND, source=_SOURCE)
        except (ApiError, InputError):
            return None
        if isinstance(found, PersistentVolume) and isinstance(planned, PersistentVolume):
            is_written = found.spec.claim_ref == planned.spec.claim_ref
        else:
            is_written = _selected_node(found) == _selected_node(planned)
        return found if is_written else None

    async def _wait(self, changes: list[tuple[Bound, Object]], versions: dict[str, int | None]) -> VolumeProblem | None:
        """Wait until the claims are bound, or one of them no longer asks for the planned node."""
        give_up = self._monotonic() + _BOUND_WITHIN
        pending = {_claim_key(obj): bound for bound, obj in changes}
        provisioned = {obj.key for _, obj in changes if isinstance(obj, PersistentVolumeClaim)}
        while pending:
            for key, bound in list(pending.items()):
                claim, pod = self._newest.claim(key), self._newest.pod(bound.pod)
                if claim is None:
                    return VolumeProblem(f"the claim {key} is gone")
                if pod is None or pod.metadata.uid != bound.uid or pod.metadata.deletion_timestamp is not None:
                    return VolumeProblem(f"the pod {bound.pod} is gone")
                if claim.spec.volume_name and claim.status.phase == "Bound":
                    problem = await self._find_problem_of_volume(claim, bound.node)
                    if problem is not None:
                        return VolumeProblem(problem, refused_pod=bound.pod)
                    del pending[key]
                elif key in provisioned:
                    node, is_reported = _selected_node(claim), not is_older(claim.metadata, versions[key])
                    if node != bound.node and (node is not None or is_reported):
                        message = f"the provisioner gave the claim {key} back: it found no room for node {bound.node}"
                        return VolumeProblem(message, refused_pod=bound.pod)
            if pending and self._monotonic() >= give_up:
                return VolumeProblem(f"the claim {next(iter(pending))} was not bound in time")
            if pending:
                await asyncio.sleep(_LOOK_EVERY)
        return None

    async def _find_problem_of_volume(self, claim: PersistentVolumeClaim, node_name: str) -> str | None:
        """Return why a node does not reach the volume of a bound claim: a provisioner may have chosen another place."""
        name, node = claim.spec.volume_name or "", self._newest.node(node_name)
        try:
            data = await self._client.read(_VOLUMES.path("", name), timeout=5.0)
            volume = decode_object(data, PersistentVolume.KIND, source=_SOURCE)
        except (ApiError, InputError):
            return None  # a volume that cannot be read keeps no pod away, as in a session
        assert isinstance(volume, PersistentVolume)
        affinity = volume.spec.node_affinity
        terms = parse_node_selector(affinity.required if affinity is not None else None)
        if terms is None or node is None or migrated_driver(volume.spec) is not None:
            return None  # the zones of migrated disks are those of their CSI drivers: the session knows them
        if any(term.matches(node_name, node.metadata.labels or {}) for term in terms):
            return None
        return f"the volume {name} of the claim {claim.key} cannot be reached from node {node_name}"


def _selected_node(claim: Object) -> str | None:
    return (claim.metadata.annotations or {}).get(SELECTED_NODE)


def _claim_key(obj: Object) -> str:
    if isinstance(obj, PersistentVolume):
        claim = obj.spec.claim_ref
        assert claim is not None
        return f"{claim.namespace}/{claim.name}"
    return obj.key
