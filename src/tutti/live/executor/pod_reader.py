"""Read a pod from the server: what decides when the answer to a write was lost or says little."""

from __future__ import annotations

from tutti.client.api_client import ApiClient
from tutti.client.resources import PODS
from tutti.exceptions import ApiError
from tutti.kube.objects import Pod
from tutti.kube.reading.decode import decode_object
from tutti.kube.reading.sources import Source

_SOURCE = Source("pods", b"")


async def read_pod(client: ApiClient, key: str, *, timeout: float) -> Pod | None:
    """Return a pod as it is now; None if it is gone. `ApiError` and `InputError` pass through."""
    namespace, _, name = key.partition("/")
    try:
        data = await client.request("GET", PODS.path(namespace, name), timeout=timeout)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    pod = decode_object(data, Pod.KIND, source=_SOURCE)
    assert isinstance(pod, Pod)
    return pod
