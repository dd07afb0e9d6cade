"""Reading a cluster once: pages, kinds that are absent, forbidden or unavailable, and errors that name the server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from tests.support.cluster_api_server import ClusterApiServer, failure, forbidden
from tests.support.documents import Document, manifest, node, pod, pod_group
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.client.cluster_reader import ListedCluster, read_cluster
from tutti.exceptions import ClusterReadError, InputError, TuttiError
from tutti.kube.private_fields import LAST_APPLIED

PODS, NODES, SERVICES = "/api/v1/pods", "/api/v1/nodes", "/api/v1/services"
REQUIRED = ("Node", "Pod")


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.client.backoff.Backoff.next", lambda *_: 0.0)


def read(
    server: ClusterApiServer,
    *kinds: str,
    required: Sequence[str] = REQUIRED,
    tell: Callable[[str], None] = lambda _: None,
) -> ListedCluster:
    """Read kinds from a running server."""

    async def run() -> ListedCluster:
        access, draw = ClusterAccess(server=server.url, name="dev"), random.Random(1)
        client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
        try:
            return await read_cluster(client, kinds, required=required, tell=tell)
        finally:
            await client.close()

    with server.running():
        return asyncio.run(run())


def error_of(server: ClusterApiServer, *kinds: str) -> TuttiError:
    with pytest.raises(TuttiError) as error:
        read(server, *kinds)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2
    return error.value


def names(listed: ListedCluster) -> dict[str, list[str]]:
    return {each.resource.kind: [obj.key for obj in each.objects] for each in listed.kinds}


def small(*more: Document) -> ClusterApiServer:
    return ClusterApiServer([node("a"), pod("p"), pod("q", namespace="x"), *more])


def test_kinds_in_the_order_of_the_request() -> None:
    server = small(manifest("Service", "s", namespace="x"))
    assert names(read(server, "Service", "Node", "Pod")) == {
        "Service": ["x/s"],
        "Node": ["a"],
        "Pod": ["default/p", "x/q"],
    }
    assert sorted(server.paths) == ["/api", NODES, PODS, SERVICES, "/apis"]


def test_pages() -> None:
    server = ClusterApiServer([node("a"), *(pod(f"p-{number}") for number in range(25))], page=10)
    lines: list[str] = []
    listed = read(server, "Node", "Pod", tell=lines.append)
    assert names(listed)["Pod"] == [f"default/p-{number}" for number in range(25)]
    queries = [query for path, query in zip(server.paths, server.queries, strict=True) if path == PODS]
    assert [query.get("continue") for query in queries] == [None, "10", "20"]
    assert {query["limit"] for query in queries} == {"500"}
    assert lines[-1] == "26 objects"
    assert {"10 of 25 objects", "11 of 26 objects"} & set(lines)  # pods or nodes come first


def test_pages_that_expire_are_read_again_at_once() -> None:
    server = ClusterApiServer([node("a"), *(pod(f"p-{number}") for number in range(25))], page=10)
    served = server._list
    continued = []

    def once_expired(request: Any) -> Any:
        if request.query.get("continue"):
            continued.append(request.query["continue"])
            return failure(410, "Expired", "the continue parameter is too old")
        return served(request)

    server._list = once_expired  # type: ignore[method-assign]
    assert len(names(read(server, "Node", "Pod"))["Pod"]) == 25
    assert continued == ["10"]


def test_kinds_that_the_server_lacks_are_absent() -> None:
    listed = read(small(), "Node", "Pod", "NodePool.karpenter.sh", "Service")
    assert list(names(listed)) == ["Node", "Pod", "Service"]
    assert not listed.left_out


def test_kinds_of_one_name_are_told_apart() -> None:
    kind = "PodGroup.scheduling.x-k8s.io"
    listed = read(small(pod_group("g", 2)), "Node", "Pod", kind, "PodGroup.scheduling.volcano.sh")
    assert names(listed)[kind] == ["default/g"]
    assert "PodGroup.scheduling.volcano.sh" not in names(listed)


def test_a_forbidden_kind_is_left_out() -> None:
    server = small()
    server.answers[SERVICES] = [lambda: forbidden("services")]
    listed = read(server, "Node", "Pod", "Service")
    assert list(names(listed)) == ["Node", "Pod"]
    assert listed.left_out == {"Service": "no permission to list services in all namespaces"}


def test_problems_are_in_the_order_of_the_request() -> None:
    for kinds in (("Namespace", "Service"), ("Service", "Namespace")):
        server = small()
        server.answers = {path: [lambda: forbidden("it")] for path in (SERVICES, "/api/v1/namespaces")}
        assert tuple(read(server, *kinds, "Node", "Pod").left_out) == kinds


@pytest.mark.parametrize(
    ("path", "line"),
    [(NODES, "no permission to list nodes"), (PODS, "no permission to list pods in all namespaces")],
)
def test_a_forbidden_required_kind_is_an_error(path: str, line: str) -> None:
    server = small()
    server.answers[path] = [lambda: forbidden("it")]
    error = error_of(server, "Node", "Pod")
    assert isinstance(error, ClusterReadError)
    assert str(error) == f"context dev ({server.url}): {line}"


def test_an_extension_server_that_is_down() -> None:
    server = small()
    server.stale.add("karpenter.sh")
    server.stale.add("metrics.k8s.io")
    listed = read(server, "Node", "Pod", "NodePool.karpenter.sh")
    assert listed.left_out == {"NodePool.karpenter.sh": "the extension server of karpenter.sh does not answer"}


def test_a_kind_that_is_unavailable_is_left_out_after_some_attempts() -> None:
    server = small()
    server.answers[SERVICES] = [lambda: failure(503, "ServiceUnavailable", "try later")] * 5
    problem = read(server, "Node", "Pod", "Service").left_out["Service"]
    assert problem == f"services: the server does not answer (GET {SERVICES}: try later)"
    assert server.paths.count(SERVICES) == 5


def test_a_busy_server_is_asked_again() -> None:
    server = small()
    server.answers[PODS] = [lambda: failure(429, "TooManyRequests", "later")] * 2
    assert names(read(server, "Node", "Pod"))["Pod"] == ["default/p", "x/q"]


def test_a_kind_that_is_deleted_meanwhile_is_absent() -> None:
    server = small()
    server.answers[SERVICES] = [lambda: failure(404, "NotFound", "gone")]
    listed = read(server, "Node", "Pod", "Service")
    assert list(names(listed)) == ["Node", "Pod"]
    assert not listed.left_out


@pytest.mark.parametrize("path", ["/api", PODS])
def test_credentials_that_the_server_rejects(path: str) -> None:
    server = small()
    server.answers[path] = [lambda: failure(401, "Unauthorized", "Unauthorized")]
    assert "the server does not accept the credentials" in str(error_of(server, "Node", "Pod"))


def test_a_server_that_is_no_api_server() -> None:
    server = small()
    server.answers["/api"] = [lambda: failure(404, "NotFound", "no such page")]
    assert str(error_of(server, "Node", "Pod")) == f"context dev ({server.url}): GET /api: no such page"


def test_a_server_without_nodes() -> None:
    server = small()
    server._groups[""]["v1"] = [each for each in server._groups[""]["v1"] if each["resource"] != "nodes"]
    assert str(error_of(server, "Node", "Pod")).endswith("the server has no Nodes")


def test_private_fields_and_nulls() -> None:
    made = pod("p", metadata={"annotations": {LAST_APPLIED: "{secret}", "kept": "yes"}, "managedFields": [{}]})
    made["spec"]["containers"][0] |= {"env": [{"name": "A", "value": "secret"}], "args": ["secret"], "ports": None}
    made["spec"]["tolerations"] = None
    listed = read(ClusterApiServer([node("a"), made]), "Node", "Pod")
    text = msgspec.json.encode(listed.kinds[1].objects).decode()
    assert "secret" not in text
    assert '"annotations":{"kept":"yes"}' in text


def test_an_invalid_object_is_named() -> None:
    made = pod("p")
    made["spec"]["priority"] = "high"
    error = error_of(ClusterApiServer([node("a"), made]), "Node", "Pod")
    assert isinstance(error, InputError)
    assert "pod default/p: spec.priority: expected int, got str" in str(error)
