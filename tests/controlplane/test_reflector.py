"""A reflector on a real API server: lists, cut streams, bookmarks, versions that are too old."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.audit_log import AuditEntry, read_audit_log
from tests.controlplane.cluster_setup import create, make_pods, open_client, send
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.followed_kind import FollowedKind, follow
from tests.controlplane.manifests import new_pod
from tests.controlplane.server_files import copy_kubeconfig
from tests.controlplane.tcp_relay import TcpRelay
from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.resources import PODS, Resource
from tutti.cluster.edits import Put

CONFIG_MAPS = Resource("", "v1", "configmaps", True, "ConfigMap")
both = pytest.mark.parametrize("streams", [True, False], ids=["stream", "pages"])


@asynccontextmanager
async def relayed(plane: ControlPlane, folder: Path) -> AsyncIterator[tuple[TcpRelay, ApiClient]]:
    """Give a client whose connections pass through a relay."""
    async with TcpRelay(plane.server) as relay:
        path = folder / "relayed.kubeconfig"
        copy_kubeconfig(plane.kubeconfig, path, token=plane.token, server=relay.url)
        async with open_client(path) as client:
            yield relay, client


async def delete(client: ApiClient, namespace: str, name: str) -> None:
    await send(client, "DELETE", PODS.path(namespace, name), {"gracePeriodSeconds": 0})


async def annotate(client: ApiClient, namespace: str, name: str, **annotations: str) -> None:
    body = {"metadata": {"annotations": annotations}}
    await send(client, "PATCH", PODS.path(namespace, name), body, content_type=MERGE_PATCH)


async def server_objects(client: ApiClient, namespace: str) -> dict[str, tuple[str, str]]:
    """Return uid and version of each pod by name, as one unpaged list has them."""
    found = [each["metadata"] for each in (await send(client, "GET", PODS.path(namespace)))["items"]]
    return {each["name"]: (each["uid"], each["resourceVersion"]) for each in found}


def watches(plane: ControlPlane, offset: int) -> list[AuditEntry]:
    """Return the watches of pods that began after an offset of the audit log."""
    entries = read_audit_log(plane.audit_log, offset=offset)
    return [
        e for e in entries if e.verb == "watch" and e.stage == "ResponseStarted" and e.object_ref.resource == "pods"
    ]


def has(followed: FollowedKind, *names: str) -> bool:
    return set(names) <= set(followed.objects)


async def test_a_streamed_and_a_paged_list_give_the_same_objects(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tutti.client.reflector.PAGE_SIZE", 7)
    await make_pods(client, [new_pod(f"p{number}", namespace) for number in range(30)])
    expected = await server_objects(client, namespace)
    assert len(expected) == 30
    for streams in (True, False):
        async with follow(client, namespace, streams_lists=streams) as followed:
            await followed.until_listed()
            assert followed.objects == expected
            assert len(followed.changes) == 30


@both
async def test_follows_changes_in_order(client: ApiClient, namespace: str, streams: bool) -> None:
    async with follow(client, namespace, streams_lists=streams) as followed:
        await followed.until_listed()
        await make_pods(client, [new_pod("a", namespace)])
        await annotate(client, namespace, "a", step="2")
        await delete(client, namespace, "a")
        await make_pods(client, [new_pod("b", namespace)])
        await followed.until(lambda: has(followed, "b"), "pod b is reported")
        assert followed.reports == ["+a", "+a", "+a", "-a", "+b"]  # a pod is marked before it is deleted
        assert followed.reflector.lists == 1


async def test_a_stream_that_is_cut_inside_a_line_loses_nothing(
    control_plane: ControlPlane, client: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_pods(client, [new_pod("a", namespace)])
    async with relayed(control_plane, tmp_path) as (relay, through), follow(through, namespace) as followed:
        await followed.until(lambda: has(followed, "a"), "pod a is reported")
        relay.cut_after(100_000)  # the line has 200,000 bytes: several TLS records
        await annotate(client, namespace, "a", large="x" * 200_000)
        await make_pods(client, [new_pod("b", namespace)])
        await followed.until(lambda: has(followed, "b"), "pod b is reported")
        assert relay.cuts == 1
        assert followed.reports == ["+a", "+a", "+b"]
        assert followed.objects == await server_objects(client, namespace)
        assert followed.reflector.lists == 1


async def test_resumes_a_cut_watch_where_it_was(
    control_plane: ControlPlane, client: ApiClient, namespace: str, tmp_path: Path
) -> None:
    offset = control_plane.audit_log.stat().st_size
    async with relayed(control_plane, tmp_path) as (relay, through), follow(through, namespace) as followed:
        await followed.until_listed()
        (first,) = await make_pods(client, [new_pod("a", namespace)])
        await followed.until(lambda: has(followed, "a"), "pod a is reported")
        relay.cut()
        await make_pods(client, [new_pod("b", namespace)])
        await followed.until(lambda: has(followed, "b"), "pod b is reported")
        assert followed.reports == ["+a", "+b"]
    assert watches(control_plane, offset)[-1].query["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_resumes_from_a_bookmark(
    control_plane: ControlPlane, client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends a bookmark two seconds before a watch ends; pods do not change, but another kind does."""
    monkeypatch.setattr("tutti.client.reflector._WATCH_SECONDS", (5, 5))
    (pod,) = await make_pods(client, [new_pod("a", namespace)])
    offset = control_plane.audit_log.stat().st_size
    async with follow(client, namespace) as followed:
        await followed.until_listed()
        other = await create(client, CONFIG_MAPS, {"metadata": {"name": "other", "namespace": namespace}})
        await server_objects(client, namespace)  # a consistent list: the server learns how far etcd is
        await followed.until(lambda: len(watches(control_plane, offset)) >= 3, "the watch begins again")
        assert (followed.reports, followed.reflector.lists) == (["+a"], 1)
    versions = [int(each.query.get("resourceVersion", 0)) for each in watches(control_plane, offset)]
    assert versions[2] >= int(other["metadata"]["resourceVersion"]) > int(pod["metadata"]["resourceVersion"])


async def test_lists_again_when_a_restarted_server_no_longer_has_the_version(
    control_plane: ControlPlane, client: ApiClient, namespace: str, tmp_path: Path
) -> None:
    """A new API server knows no older changes: it answers the watch with an error event, status 410."""
    await make_pods(client, [new_pod(name, namespace) for name in ("stays", "changes", "goes", "comes-back")])
    async with relayed(control_plane, tmp_path) as (relay, through), follow(through, namespace) as followed:
        await followed.until(lambda: len(followed.objects) == 4, "all pods are reported")
        followed.changes.clear()
        relay.hold()
        await annotate(client, namespace, "changes", step="2")
        await delete(client, namespace, "goes")
        await delete(client, namespace, "comes-back")
        await make_pods(client, [new_pod("comes-back", namespace), new_pod("new", namespace)])
        control_plane.restart_api_server()
        relay.release()
        await followed.until(lambda: followed.reflector.lists >= 2, "a second list")
        assert sorted(followed.reports) == sorted(["+changes", "-goes", "-comes-back", "+comes-back", "+new"])
        assert followed.reports.index("-comes-back") < followed.reports.index("+comes-back")
        await make_pods(client, [new_pod("later", namespace)])
        await followed.until(lambda: has(followed, "later"), "the watch goes on")
        expected = await server_objects(client, namespace)
        del expected["stays"]
        assert followed.objects == expected


async def test_pages_that_expire_are_read_at_once(
    control_plane: ControlPlane, client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pages etcd is compacted and the API server, whose memory has old versions, is restarted."""
    monkeypatch.setattr("tutti.client.reflector.PAGE_SIZE", 3)
    await make_pods(client, [new_pod(f"p{number}", namespace) for number in range(10)])
    offset = control_plane.audit_log.stat().st_size
    async with follow(client, namespace, streams_lists=False) as followed:

        def forget() -> None:
            followed.on_change = None
            compact_all(control_plane)
            control_plane.restart_api_server()

        followed.on_change = forget
        await followed.until_listed()
        assert followed.objects == await server_objects(client, namespace)
    entries = [e for e in read_audit_log(control_plane.audit_log, offset=offset) if e.verb == "list"]
    asked = [(e.response_status.code, "limit" in e.query) for e in entries if e.object_ref.resource == "pods"]
    assert asked[:3] == [(200, True), (410, True), (200, False)]


def compact_all(plane: ControlPlane) -> None:
    """Let etcd forget all versions up to now."""
    written = etcd_request(plane, "put", {"key": "dHV0dGk=", "value": ""})
    etcd_request(plane, "compaction", {"revision": written["header"]["revision"], "physical": True})


def etcd_request(plane: ControlPlane, method: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{plane.etcd}/v3/kv/{method}", json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        decoded: dict[str, Any] = json.load(answer)
        return decoded


@both
async def test_annotations_may_have_any_line_separator(client: ApiClient, namespace: str, streams: bool) -> None:
    text = "a\u0085b\u2028c\u2029d\x0be\x1cf\r\ng"
    await make_pods(client, [new_pod("listed", namespace, annotations={"note": text})])
    async with follow(client, namespace, streams_lists=streams) as followed:
        await followed.until_listed()
        await make_pods(client, [new_pod("watched", namespace, annotations={"note": text})])
        await followed.until(lambda: has(followed, "listed", "watched"), "both pods are reported")
        notes = [
            (change.obj.metadata.annotations or {})["note"] for change in followed.changes if isinstance(change, Put)
        ]
        assert notes == [text, text]


@both
async def test_an_object_that_is_created_again_is_removed_first(
    client: ApiClient, namespace: str, streams: bool
) -> None:
    (old,) = await make_pods(client, [new_pod("a", namespace)])
    async with follow(client, namespace, streams_lists=streams) as followed:
        await followed.until(lambda: has(followed, "a"), "pod a is reported")
        await delete(client, namespace, "a")
        (new,) = await make_pods(client, [new_pod("a", namespace)])
        uid = new["metadata"]["uid"]
        await followed.until(lambda: followed.objects.get("a", ("", ""))[0] == uid, "the new pod is reported")
        assert followed.reports == ["+a", "+a", "-a", "+a"]
        uids = [change.obj.metadata.uid if isinstance(change, Put) else change.uid for change in followed.changes]
        assert uids == [*[old["metadata"]["uid"]] * 3, uid]
