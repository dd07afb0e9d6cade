"""The pod of the scheduler that leads: the holder of its Lease, whose identity begins with the pod's name.

The arguments of its container say on which port it serves, and whether with TLS.

Contract: reads the Lease and the pod, both in the same namespace; an absent one is a `TuttiError` that says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from tutti.client.api_client import ApiClient
from tutti.client.resources import LEASES, PODS
from tutti.exceptions import ApiError, TuttiError

_DEFAULT_PORT = 10271
_COMMAND = "scheduler"
"""The word that tells the scheduler's container from sidecars."""

_Kind = TypeVar("_Kind")


class LeaderPod(NamedTuple):
    """Where the scheduler serves its state."""

    key: str
    port: int
    has_tls: bool


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _LeaseObject(msgspec.Struct, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class _Container(msgspec.Struct, frozen=True):
    command: list[str] | None = None
    args: list[str] | None = None


class _PodSpec(msgspec.Struct, frozen=True):
    containers: list[_Container]


class _PodObject(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _PodSpec


class _Pods(msgspec.Struct, frozen=True):
    items: list[_PodObject] | None = None


async def find_leader_pod(client: ApiClient, lease: str) -> LeaderPod:
    """Return the pod in which the holder of a lease, namespace/name, runs."""
    namespace, _, name = lease.partition("/")
    try:
        data = await client.read(LEASES.path(namespace, name), timeout=10.0)
    except ApiError as error:
        if error.status != 404:
            raise
        problem = f"there is no Lease {lease}: no scheduler runs, or it uses another one"
        raise TuttiError(f"{problem}; give --lease, or --url with the scheduler's address") from None
    holder = _decoded(data, _LeaseObject).spec.holder_identity or ""
    if not holder:
        raise TuttiError(f"nobody holds the Lease {lease}: no scheduler leads at the moment")
    return await _pod_of(client, holder, namespace)


async def _pod_of(client: ApiClient, holder: str, namespace: str) -> LeaderPod:
    """Return the pod of a holder, which must be in the namespace of the lease.

    A pod of this name in another namespace may belong to anybody, and would be sent the user's token.
    """
    name = holder.rpartition("_")[0] or holder
    query = {"fieldSelector": f"metadata.name={name}", "limit": "2"}
    data = await client.read(PODS.path(namespace), query=query, timeout=10.0)
    found = _decoded(data, _Pods).items or []
    if not found:
        problem = f"the scheduler that leads, {holder}, does not run in a pod of namespace {namespace}"
        raise TuttiError(f"{problem}: give --url with its address")
    return _leader_pod(found[0])


def _decoded(data: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        problem = "the server of the kubeconfig does not answer as a Kubernetes API server"
        raise TuttiError(f"{problem}: check --kubeconfig and --context") from None


def _leader_pod(pod: _PodObject) -> LeaderPod:
    words = _words_of_scheduler(pod.spec.containers)
    port = _option(words, "--port")
    return LeaderPod(
        f"{pod.metadata.namespace}/{pod.metadata.name}",
        int(port) if port.isdigit() else _DEFAULT_PORT,
        bool(_option(words, "--tls-cert")),
    )


def _words_of_scheduler(containers: Sequence[_Container]) -> Sequence[str]:
    """Return the command line of the container that runs `scheduler`; that of the only container otherwise."""
    command_lines = [[*(each.command or ()), *(each.args or ())] for each in containers]
    found = [words for words in command_lines if _COMMAND in words] or command_lines
    return found[0] if len(found) == 1 else ()


def _option(words: Sequence[str], name: str) -> str:
    """Return the value of an option among the words of a command line; empty if it is not there."""
    for place, word in enumerate(words):
        if word == name and place + 1 < len(words):
            return words[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""
