"""`tutti inspect`: by address and by port-forward, what is asked, and what a refusal looks like."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import WSMsgType, web

from tests.support.command_line import Run
from tutti.cli.inspect import state_request
from tutti.client.port_forward import PROTOCOL
from tutti.wire.scheduler_state import GangSummary, SchedulerState

Tutti = Callable[..., Run]
STATE = SchedulerState(
    time="2027-01-15T08:00:00Z",
    version="0.1.0",
    scheduler_name="tutti",
    identity="tutti-0_ab",
    leads=True,
    gangs=(GangSummary(namespace="team-a", name="train", dialect="native", phase="whole", minimum=2, running=2),),
)


class Cluster:
    """An API server with a Lease and a pod, whose port-forward leads to a scheduler; both on one address."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, str]] = []
        self.tokens: list[str] = []
        self.forbids_everything = False
        self.holder = "tutti-0_ab"
        self.arguments = ["scheduler"]
        self.foreign: web.Response | None = None
        """The answer of a server that is neither a scheduler nor an API server."""
        self.sidecars: list[dict[str, Any]] = []

    async def state(self, request: web.Request) -> web.StreamResponse:
        if self.foreign is not None:
            return self.foreign
        self.asked.append(dict(request.query))
        self.tokens.append(request.headers["Authorization"])
        if self.forbids_everything and "namespace" not in request.query:
            return web.Response(status=403, text="user x may not get /debug/state\n")
        return web.Response(body=msgspec.json.encode(STATE), content_type="application/json")

    async def lease(self, _request: web.Request) -> web.StreamResponse:
        if self.foreign is not None:
            return self.foreign
        return web.json_response({"spec": {"holderIdentity": self.holder}})

    async def pods(self, request: web.Request) -> web.StreamResponse:
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        pod = {
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"containers": [*self.sidecars, {"name": "tutti", "args": self.arguments}]},
        }
        return web.json_response({"items": [pod] if name == "tutti-0" else []})

    async def tenant_pods(self, request: web.Request) -> web.StreamResponse:
        """Return a pod of any name: a tenant may name a pod as the scheduler's."""
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        pod = {"metadata": {"name": name, "namespace": "tenant"}, "spec": {"containers": [{"args": ["--port=6666"]}]}}
        return web.json_response({"items": [pod]})

    async def port_forward(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(PROTOCOL,))
        await socket.prepare(request)
        port = int(request.query["ports"])
        for channel in (b"\x00", b"\x01"):
            await socket.send_bytes(channel + port.to_bytes(2, "little"))
        if port != 10271:
            await socket.send_bytes(b"\x01connection refused")
            await socket.close()
            return socket
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))

        async def back() -> None:
            while data := await reader.read(1 << 15):
                await socket.send_bytes(b"\x00" + data)

        task = asyncio.create_task(back())
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                writer.write(message.data[1:])
        task.cancel()
        writer.close()
        return socket


@contextmanager
def running(cluster: Cluster) -> Iterator[None]:
    """Serve a cluster on a thread of its own, because the command has an event loop itself."""
    ready, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/debug/state", cluster.state)
        app.router.add_get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}", cluster.lease)
        app.router.add_get("/api/v1/namespaces/kube-system/pods", cluster.pods)
        app.router.add_get("/api/v1/pods", cluster.tenant_pods)
        app.router.add_get("/api/v1/namespaces/kube-system/pods/tutti-0/portforward", cluster.port_forward)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        cluster.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
        loops.append(asyncio.get_running_loop())
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    served = Cluster()
    with running(served):
        yield served


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> str:
    return written(tmp_path, cluster, {"token": "from-kubeconfig"})


def written(folder: Path, cluster: Cluster, user: dict[str, Any]) -> str:
    path = folder / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}}],
        "clusters": [{"name": "c", "cluster": {"server": cluster.url}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(config))
    return str(path)


def test_the_leader_is_found_and_asked_through_a_port_forward(tutti: Tutti, cluster: Cluster, kubeconfig: str) -> None:
    run = tutti("inspect", "gangs", "--kubeconfig", kubeconfig)
    assert (run.code, run.err) == (0, "")
    assert run.lines[1].split() == ["team-a", "train", "native", "2/2", "0", "Running"]
    assert cluster.asked == [{"limit": "500"}]
    assert cluster.tokens == ["Bearer from-kubeconfig"]


def test_an_address_and_a_token_need_no_kubeconfig(tutti: Tutti, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    run = tutti("inspect", "--url", cluster.url, "--token-file", str(tmp_path / "token"), "-o", "json")
    assert run.code == 0
    assert run.json["gangs"][0]["name"] == "train"
    assert cluster.tokens == ["Bearer from-file"]


def test_a_pod_is_asked_for_in_the_namespace_of_the_context(tutti: Tutti, cluster: Cluster, kubeconfig: str) -> None:
    run = tutti("inspect", "pod/train-0", "--kubeconfig", kubeconfig)
    assert cluster.asked == [{"limit": "500", "pod": "train-0", "namespace": "team-a"}]
    assert (run.code, run.err) == (2, "error: the scheduler knows no pod train-0 in namespace \n")
    tutti("inspect", "gang/train", "-n", "other", "--kubeconfig", kubeconfig, "--limit", "7")
    assert cluster.asked[1] == {"limit": "7", "gang": "train", "namespace": "other"}


def test_who_may_not_see_everything_sees_the_context_s_namespace(
    tutti: Tutti, cluster: Cluster, kubeconfig: str
) -> None:
    cluster.forbids_everything = True
    run = tutti("inspect", "gangs", "--kubeconfig", kubeconfig)
    assert run.code == 0
    assert run.err == "note: you may not see all namespaces: this is namespace team-a\n"
    refused = tutti("inspect", "gangs", "-A", "--kubeconfig", kubeconfig)
    assert (refused.code, refused.err) == (2, "error: user x may not get /debug/state\n")


def test_the_port_comes_from_the_pod_s_arguments(tutti: Tutti, cluster: Cluster, kubeconfig: str) -> None:
    cluster.arguments = ["scheduler", "--port=1234"]
    run = tutti("inspect", "--kubeconfig", kubeconfig)
    assert run.err == "error: port-forward to pod kube-system/tutti-0, port 1234: connection refused\n"
    assert tutti("inspect", "--kubeconfig", kubeconfig, "--port", "10271").code == 0


@pytest.mark.parametrize("sidecar", [{"args": ["proxy", "--port=1234", "--tls-cert=x"]}, {"command": ["--port", "1"]}])
def test_the_port_of_a_sidecar_does_not_count(
    tutti: Tutti, cluster: Cluster, kubeconfig: str, sidecar: dict[str, Any]
) -> None:
    cluster.sidecars = [sidecar]
    assert tutti("inspect", "--kubeconfig", kubeconfig).code == 0
    cluster.arguments = ["--port=1234"]  # neither container says that it runs the scheduler
    assert tutti("inspect", "--kubeconfig", kubeconfig).code == 0


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        ("", "nobody holds the Lease"),
        ("laptop_12", "laptop_12, does not run in a pod of namespace kube-system: give --url with its address"),
    ],
)
def test_no_leader_in_a_pod(tutti: Tutti, cluster: Cluster, kubeconfig: str, holder: str, words: str) -> None:
    cluster.holder = holder
    run = tutti("inspect", "--kubeconfig", kubeconfig)
    assert run.code == 2
    assert words in run.err


def test_a_certificate_alone_is_not_enough(tutti: Tutti, cluster: Cluster, tmp_path: Path) -> None:
    kubeconfig = written(tmp_path, cluster, {"username": "u", "password": "p"})
    run = tutti("inspect", "--kubeconfig", kubeconfig)
    assert "no bearer token, only a certificate or a password: give --token-file" in run.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("queues",), "inspect gangs, queue, holds"),
        (("pod",), "pod/NAME"),
        (("pod/",), "pod/NAME"),
        (("-n", "a", "-A"), "exclude each other"),
        (("pod/x", "-A"), "needs one namespace"),
        (("--lease", "foo/"), "'foo/' is not NAMESPACE/NAME."),
        (("--lease", "a/b/c"), "'a/b/c' is not NAMESPACE/NAME."),
    ],
)
def test_wrong_usage(tutti: Tutti, arguments: tuple[str, ...], words: str) -> None:
    run = tutti("inspect", *arguments)
    assert run.code == 2
    assert words in run.err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://10.0.0.1:1", "your token would be readable"),
        ("scheduler:1", "want http://HOST:PORT"),
        ("http://[::1", "want http://HOST:PORT"),
        ("http://127.0.0.1:99999", "want http://HOST:PORT"),
        ("http://127.0.0.1:0", "want http://HOST:PORT"),
        ("http://127.0.0.1:1/?x=y", "want http://HOST:PORT"),
        ("https://exa mple:1", "exa mple"),
        ("https://user:password@host", "leave out the user: the bearer token says who you are"),
    ],
)
def test_addresses_that_are_not_asked(tutti: Tutti, tmp_path: Path, url: str, words: str) -> None:
    (tmp_path / "token").write_text("t")
    run = tutti("inspect", "--url", url, "--token-file", str(tmp_path / "token"))
    assert run.code == 2
    assert words in run.err
    assert run.err.count("\n") == 1
    assert "password@" not in run.err


@pytest.mark.parametrize("token", ["a\nb", "a b", "a\x01", "\u00e4"])
def test_a_token_that_no_header_can_have(tutti: Tutti, tmp_path: Path, token: str) -> None:
    path = tmp_path / "token"
    path.write_text(token)
    run = tutti("inspect", "--url", "http://127.0.0.1:1", "--token-file", str(path))
    problem = "the token has spaces, line breaks or characters that no token has"
    assert (run.code, run.err) == (2, f"error: --token-file {path}: {problem}\n")


def test_nobody_answers_at_the_address(tutti: Tutti, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    run = tutti("inspect", "--url", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"))
    assert (run.code, run.err.count("\n")) == (2, 1)
    assert "Cannot connect to host 127.0.0.1:1" in run.err


def test_another_server_answers_at_the_address(tutti: Tutti, cluster: Cluster, tmp_path: Path) -> None:
    cluster.foreign = web.Response(status=404, text="<html>\n</html>", content_type="text/html")
    (tmp_path / "token").write_text("t")
    run = tutti("inspect", "--url", cluster.url, "--token-file", str(tmp_path / "token"))
    assert (run.code, run.err) == (2, f"error: {cluster.url}: status 404: this is no scheduler of Tutti\n")


def test_the_server_of_the_kubeconfig_is_no_api_server(tutti: Tutti, cluster: Cluster, kubeconfig: str) -> None:
    cluster.foreign = web.Response(text="<html>hello</html>", content_type="text/html")
    run = tutti("inspect", "--kubeconfig", kubeconfig)
    assert (run.code, run.err.count("\n")) == (2, 1)
    assert "does not answer as a Kubernetes API server: check --kubeconfig" in run.err


def test_the_lease_may_not_be_read(tutti: Tutti, cluster: Cluster, kubeconfig: str) -> None:
    cluster.foreign = web.json_response({"kind": "Status", "message": "forbidden", "code": 403}, status=403)
    run = tutti("inspect", "--kubeconfig", kubeconfig)
    assert (run.code, run.err.count("\n")) == (2, 1)
    assert run.err.startswith("error: cannot find the scheduler that leads: GET /apis/coordination.k8s.io/")


def test_only_the_given_authority_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts: list[ssl.SSLContext] = []

    async def note(*_arguments: Any, context: ssl.SSLContext) -> SchedulerState:
        contexts.append(context)
        return STATE

    monkeypatch.setattr(state_request, "_request", note)
    authority = Path(__file__).with_name("authority.pem")
    asyncio.run(state_request.request_by_url("https://h:1", "t", {}, authority=str(authority)))
    (trusted,) = contexts[0].get_ca_certs()
    assert trusted["subject"] == ((("commonName", "authority"),),)
