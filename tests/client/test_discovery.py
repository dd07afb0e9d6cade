"""Discovery: which kinds a server has, in which versions."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest
from aiohttp import web

from tests.support.scripted_api_server import ScriptedApiServer, Step
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.client.discovery import Discovered, discover
from tutti.exceptions import ApiError

ALL = ["create", "get", "list", "watch"]


def answer(*groups: dict[str, Any]) -> Step:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "APIGroupDiscoveryList", "items": groups})

    return step


def group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "versions": versions}


def version(name: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {"version": name, "resources": resources, "freshness": freshness}


def resource(plural: str, kind: str, *, scope: str = "Namespaced", verbs: list[str] = ALL) -> dict[str, Any]:
    return {"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": verbs}


def ask(*steps: Step) -> Discovered:
    async def run() -> Discovered:
        async with ScriptedApiServer(*steps) as server:
            access, draw = ClusterAccess(server=server.url), random.Random(1)
            client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
            try:
                return await discover(client)
            finally:
                await client.close()

    return asyncio.run(run())


def test_kinds_and_paths() -> None:
    core = group("", version("v1", resource("pods", "Pod"), resource("nodes", "Node", scope="Cluster")))
    batch = group("batch", version("v1", resource("jobs", "Job"), resource("widgets", "Widget")))
    found = ask(answer(core), answer(batch))
    assert set(found.resources) == {"Pod", "Node", "Job"}
    assert found.resources["Pod"].path("ml", "g-0", "binding") == "/api/v1/namespaces/ml/pods/g-0/binding"
    assert found.resources["Node"].path("ml", "n1") == "/api/v1/nodes/n1"
    assert found.resources["Job"].path() == "/apis/batch/v1/jobs"
    assert found.resources["Job"].name == "jobs.batch"


def test_the_known_version_is_preferred() -> None:
    newer = version("v2", resource("jobs", "Job"))
    known, only_newer = group("batch", newer, version("v1", resource("jobs", "Job"))), group("batch", newer)
    assert ask(answer(), answer(known)).resources["Job"].version == "v1"
    assert ask(answer(), answer(only_newer)).resources["Job"].version == "v2"


def test_kinds_of_one_name_are_told_apart_by_group() -> None:
    groups = (
        group("scheduling.x-k8s.io", version("v1alpha1", resource("podgroups", "PodGroup"))),
        group("scheduling.volcano.sh", version("v1beta1", resource("podgroups", "PodGroup"))),
        group("example.com", version("v1", resource("podgroups", "PodGroup"))),
    )
    assert {each.group for each in ask(answer(), answer(*groups)).resources.values()} == {
        "scheduling.x-k8s.io",
        "scheduling.volcano.sh",
    }


def test_kinds_that_cannot_be_watched_are_absent() -> None:
    core = group("", version("v1", resource("pods", "Pod", verbs=["get"])))
    assert not ask(answer(core), answer()).resources


def test_extension_servers_that_do_not_answer_are_named() -> None:
    stale = group("metrics.k8s.io", version("v1beta1", freshness="Stale"))
    assert ask(answer(), answer(stale)).stale_groups == {"metrics.k8s.io"}


def test_an_old_server() -> None:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "APIVersions", "versions": ["v1"]})

    with pytest.raises(ApiError, match=r"Kubernetes 1\.27 or newer"):
        ask(step)
