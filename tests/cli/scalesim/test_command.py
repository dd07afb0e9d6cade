"""`tutti scalesim`: the whole story, its own server and others, and what is said of servers that do not answer."""

from __future__ import annotations

import copy
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Run
from tests.support.paths import EXAMPLES
from tests.support.wire_bodies import changed, daemon, node, pod, smallest

Tutti = Callable[..., Run]
Given = Callable[[Any], str]
EXAMPLE = EXAMPLES / "recommend" / "gardener-snapshot.json"


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Write a snapshot, and give its path."""

    def written(tree: Any) -> str:
        path = tmp_path / "snapshot.json"
        path.write_text(json.dumps(tree), "utf-8")
        return str(path)

    return written


@contextmanager
def serving(
    *answers: Any, status: int = 200, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A recommender that gives these answers, the last one for ever; and what it was asked."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append({"path": self.path, "token": self.headers["Authorization"], "body": json.loads(data)})
            answer = answers[min(len(requests), len(answers)) - 1]
            text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def up(number: int = 1, *names: str, pool: str = "p1", zone: str = "eu-west-1a") -> dict[str, Any]:
    """An answer as the original recommender gives it."""
    item = {"zone": zone, "nodePoolName": pool, "incrementBy": number, "instanceType": "m5.large"}
    more = {"nodeNames": list(names)} if names else {}
    return {"recommendation": {"scaleUp": [item | more]}, "unscheduledPods": None, "runTime": "7 millis"}


NOTHING = {"recommendation": {}, "unscheduledPods": [], "runTime": "1 millis"}


# Its own server -------------------------------------------------------------------------------------------------------


def test_the_whole_story_with_its_own_server(tutti: Tutti):
    run = tutti("scalesim", "-f", str(EXAMPLE))
    assert run.code == 0
    assert run.lines[0] == "virtual cluster: 3 namespaces, 1 priority class, 2 nodes, 16 pods (8 on nodes)"
    for part in (
        "2 pods get an existing node:",
        "6 pods wait for new nodes",
        "round 1 (",
        "6 pods get a node, 0 p",
    ):
        assert part in run.out
    assert "6 pods on 4 new nodes in 1 round\ncost $781.10 a month ($1.0700 an hour)" in run.out


# Another server -------------------------------------------------------------------------------------------------------


def test_rounds_go_on_with_what_came_before(tutti: Tutti, given: Given):
    tree = smallest() | {"Nodes": [node("n1")], "Pods": [daemon("proxy-abcde", "n1"), *smallest()["Pods"]]}
    tree["Colour"] = {"kept": True}
    with serving(up(1), up(1, "mine"), NOTHING) as (url, requests):
        run = tutti("scalesim", "-f", given(tree), "--url", url, "-o", "json")
    assert run.code == 0
    assert [each["path"] for each in requests] == ["/recommend/"] * 2
    result = run.json
    assert result["cluster"] == {"namespaces": 2, "priorityClasses": 0, "nodes": 1, "pods": 4, "bound": 1}
    assert result["placed"] == [{"pod": "shop/w-0", "node": "n1"}]
    assert [[each["name"] for each in round_["nodes"]] for round_ in result["rounds"]] == [
        ["p1-eu-west-1a-new-1"], ["mine"]
    ]  # fmt: skip
    assert [round_["placed"] for round_ in result["rounds"]] == [
        [{"pod": "shop/w-1", "node": "p1-eu-west-1a-new-1"}], [{"pod": "shop/w-2", "node": "mine"}]
    ]  # fmt: skip
    assert (result["pending"], result["stopped"]) == ([], False)
    assert result["cost"]["perHour"] == pytest.approx(2 * 0.107)
    # What is posted later has the bindings, the new node and its daemon, and all that was given.
    first, second = (each["body"] for each in requests)
    assert first["Colour"] == second["Colour"] == {"kept": True}
    assert [each["Name"] for each in second["Nodes"]] == ["n1", "p1-eu-west-1a-new-1"]
    where = {each["Name"]: each.get("NodeName") for each in second["Pods"]}
    assert where["w-0"] == "n1"
    assert where["w-1"] == "p1-eu-west-1a-new-1"
    assert not where["w-2"]
    assert sum(each["Namespace"] == "kube-system" for each in second["Pods"]) == 2


def test_names_of_a_snapshot_in_another_case_stay(tutti: Tutti, given: Given):
    tree = smallest()
    tree["pods"] = [{"name": f"w-{n}", "Spec": each["Spec"]} for n, each in enumerate(tree.pop("Pods"))]
    with serving(up(1), NOTHING) as (url, requests):
        run = tutti("scalesim", "-f", given(tree), "--url", url, "-o", "json")
    assert run.code == 0
    last = requests[-1]["body"]
    assert "Pods" not in last
    assert [each.get("NodeName") for each in last["pods"]] == ["p1-eu-west-1a-new-1", None, None]


def test_it_stops_when_nothing_is_bought(tutti: Tutti, given: Given):
    with serving(NOTHING) as (url, requests):
        path = given(smallest())
        run = tutti("scalesim", "-f", path, "--url", url)
        assert (run.code, len(requests)) == (0, 1)
        assert "round 1 (1 millis): the recommender buys nothing" in run.out
        assert "3 pods stay pending:" in run.out
        assert "no nodes available to schedule pods" in run.out
        assert tutti("scalesim", "-f", path, "--url", url, "--fail-unschedulable").code == 1


def test_it_stops_when_the_rounds_are_used_up(tutti: Tutti, given: Given):
    with serving(up(1)) as (url, requests):
        run = tutti("scalesim", "-f", given(smallest()), "--url", f"{url}/recommend", "--rounds", "2")
    assert (run.code, len(requests)) == (0, 2)
    assert "stopped after 2 rounds (--rounds)" in run.out


def test_nobody_is_asked_when_nobody_waits(tutti: Tutti, given: Given):
    tree = smallest() | {"Nodes": [node("n1")], "Pods": [pod("a")]}
    with serving(NOTHING) as (url, requests):
        run = tutti("scalesim", "-f", given(tree), "--url", url)
    assert (run.code, requests) == (0, [])
    assert "0 pods wait for new nodes" in run.out


def test_unknown_prices_and_nodes_that_can_go_are_told(tutti: Tutti, given: Given, tmp_path: Path):
    tree = json.loads(json.dumps(smallest()).replace("eu-west-1", "mars-1"))
    answer = up(3, zone="mars-1a")
    answer["recommendation"]["scaleDown"] = ["old-1"]
    with serving(answer) as (url, _):
        run = tutti("scalesim", "-f", given(tree), "--url", url)
        assert "cost unknown" in run.out
        assert "1 node could be removed, according to the recommender: old-1" in run.out
        table = tmp_path / "prices.csv"
        table.write_text("instance_type,usd_hour\nm5.large,0.5\n")
        assert "$1.5000 an hour" in tutti("scalesim", "-f", given(tree), "--url", url, "--prices", str(table)).out


def test_tokens(tutti: Tutti, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TUTTI_TOKEN", "from-env")
    file = tmp_path / "token"
    file.write_text("from-file\n")
    path = given(smallest())
    with serving(NOTHING) as (url, requests):
        tutti("scalesim", "-f", path, "--url", url)
        tutti("scalesim", "-f", path, "--url", url, "--token-file", str(file))
    assert [each["token"] for each in requests] == ["Bearer from-env", "Bearer from-file"]
    file.write_text("\n")
    assert "want one line with a token" in tutti("scalesim", "-f", path, "--url", url, "--token-file", str(file)).err
    assert "no such file" in tutti("scalesim", "-f", path, "--token-file", str(tmp_path / "none")).err


# What goes wrong ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "answer", "line"),
    [
        (400, {"error": "WorkerPools[0]: no"}, "/recommend/: the server answers 400: WorkerPools[0]: no"),
        (500, {"detail": "broken"}, "the server answers 500: broken"),
        (503, b"busy\nnow", "the server answers 503: busy"),
        (401, {"error": "no"}, "the server answers 401: give its token with --token-file or in TUTTI_TOKEN"),
        (404, b"", "the server answers 404: there is no recommender at this address"),
        (200, b"hello", "the answer is not a recommendation (want JSON with recommendation.scaleUp)"),
        (200, b"<html>", "the server answers with a web page: it is not a recommender (want JSON"),
        (501, b"\n<!DOCTYPE HTML>\n<html>", "answers 501 with a web page: it is not a recommender"),
        (502, b"<html>\nno upstream", "/recommend/: the server answers 502: Bad Gateway"),
        (
            200,
            {"recommendation": {"scaleUp": 7}},
            "is not a recommendation: recommendation.scaleUp: want a list, not an",
        ),
        (200, {"recommendation": {}, "error": "half a plan"}, "the server says: half a plan"),
        (
            200,
            up(pool="q"),
            "the answer adds nodes of pool q in eu-west-1a of type m5.large, which the snapshot does not",
        ),
        (200, up(-1), "recommendation.scaleUp[0].incrementBy: want an integer >= 0"),
        (200, up(10**9), "the answer adds 1,000,000,000 nodes at once"),
    ],
)
def test_answers_that_are_none(tutti: Tutti, given: Given, status: int, answer: Any, line: str):
    with serving(answer, status=status) as (url, _):
        run = tutti("scalesim", "-f", given(smallest()), "--url", url)
    assert (run.code, run.out) == (2, "")
    (last,) = [text for text in run.err.splitlines() if text.startswith("error: ")]
    assert line in last


def test_a_server_that_is_not_there(tutti: Tutti, given: Given):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        run = tutti("scalesim", "-f", given(smallest()), "--url", f"http://127.0.0.1:{port}")
    assert run.code == 2
    assert "connection refused: no recommender listens there; start one there with `tutti recommender`" in run.err
    run = tutti("scalesim", "-f", given(smallest()), "--url", "127.0.0.1:80")
    assert "want an address like http://127.0.0.1:8080" in run.err


def test_an_untrusted_certificate(tutti: Tutti, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with serving(NOTHING, tls=context) as (url, requests):
        run = tutti("scalesim", "-f", given(smallest()), "--url", url)
        assert (run.code, requests) == (2, [])
        assert (
            "the certificate is not trusted: self-signed certificate; set SSL_CERT_FILE to the certificate" in run.err
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        assert tutti("scalesim", "-f", given(smallest()), "--url", url).code == 0
        run = tutti("scalesim", "-f", given(smallest()), "--url", url.replace("127.0.0.1", "localhost"))
        assert "the certificate is not trusted: Hostname mismatch" in run.err
        assert "SSL_CERT_FILE" not in run.err
    with serving(NOTHING) as (url, _):
        run = tutti("scalesim", "-f", given(smallest()), "--url", url.replace("http", "https"))
        assert "the server does not speak TLS" in run.err


def test_a_server_that_does_not_answer(tutti: Tutti, given: Given):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        run = tutti("scalesim", "-f", given(smallest()), "--url", url, "--timeout", "0.2")
    assert run.code == 2
    assert "no answer within 0.2 s; give it longer with --timeout" in run.err


@pytest.mark.parametrize(
    ("tree", "line"),
    [
        ({"kind": "List", "items": []}, "want a Gardener ClusterSnapshot (AutoscalerConfig, WorkerPools, Pods, Nodes)"),
        (changed(smallest(), "WorkerPools.0.Maximum", "x"), "WorkerPools[0].Maximum: want an integer, not text"),
    ],
)
def test_wrong_snapshots(tutti: Tutti, given: Given, tree: Any, line: str):
    path = given(tree)
    run = tutti("scalesim", "-f", path, "--url", "http://127.0.0.1:9")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"error: {path}: {line}")


def test_an_empty_file(tutti: Tutti, tmp_path: Path):
    path = tmp_path / "empty.json"
    path.write_text("\n")
    run = tutti("scalesim", "-f", str(path))
    assert (run.code, run.err) == (2, f"error: {path}: it is empty\n")


def test_malformed_text(tutti: Tutti, tmp_path: Path):
    path = tmp_path / "s.json"
    path.write_text('{"Pods": [\n,]}')
    run = tutti("scalesim", "-f", str(path), "--url", "http://127.0.0.1:9")
    assert run.code == 2
    assert "JSON is malformed" in run.err
    assert "(line 2)" in run.err


# `tutti recommend` takes every format ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gardener-snapshot.json", "scaling-advisor.json"])
def test_recommend_reads_examples(tutti: Tutti, name: str):
    run = tutti("recommend", "-f", str(EXAMPLE.parent / name))
    assert run.code == 0
    assert "pending pods get a node" in run.out


def test_recommend_reads_the_body_of_a_request(tutti: Tutti, given: Given):
    cluster = json.loads((EXAMPLE.parent / "cluster.json").read_bytes())
    run = tutti("recommend", "-f", given({"cluster": cluster}), "-o", "name")
    assert run.code == 0
    assert run.out == tutti("recommend", "-f", str(EXAMPLE.parent / "cluster.json"), "-o", "name").out


def test_recommend_takes_a_constraint_as_pools(tutti: Tutti, given: Given):
    constraint = json.loads((EXAMPLE.parent / "scaling-advisor.json").read_bytes())["constraint"]
    path = given(constraint)
    run = tutti("recommend", "-f", str(EXAMPLE.parent / "cluster.json"), "--pools", path, "-o", "json")
    assert run.code == 0
    assert {each["nodePool"] for each in run.json["pools"]} == {"a", "b"}


@pytest.mark.parametrize("more", [["--pools", "x"], ["--region", "eu-west-1"]])
def test_recommend_refuses_pools_beside_a_snapshot(tutti: Tutti, more: list[str]):
    run = tutti("recommend", "-f", str(EXAMPLE), *more)
    assert run.code == 2
    assert "cannot be given with a Gardener snapshot, which has pools of its own" in run.err


def test_recommend_names_what_is_wrong_and_wants_one_snapshot(tutti: Tutti, given: Given):
    tree = copy.deepcopy(smallest())
    tree["Pods"][1]["Spec"]["priority"] = "high"
    path = given(tree)
    run = tutti("recommend", "-f", path)
    assert (run.code, run.err) == (2, f"error: {path}: Pods[1].Spec.priority: want an integer, not text\n")
    run = tutti("recommend", "-f", path, "-f", str(EXAMPLE.parent / "cluster.json"))
    assert "a Gardener snapshot cannot be combined with other files: give one -f" in run.err
