"""Who may ask: the token, TLS, and where the server listens."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.serve.conftest import START, Server, case, wait_until

TOKEN = "correct-horse"


def bearer(token: str, kind: str = "Bearer") -> dict[str, str]:
    return {"Authorization": f"{kind} {token}"}


@pytest.fixture(scope="module")
def guarded() -> Server:
    started = Server("--workers", "1", environment={"TUTTI_TOKEN": TOKEN})
    started.wait_ready()  # which needs no token
    yield started
    started.close()


def test_the_right_token_opens_everything(guarded: Server) -> None:
    assert guarded.post(case(), headers=bearer(TOKEN)).status_code == 200
    assert guarded.post(case(), headers=bearer(TOKEN, "bearer")).status_code == 200
    assert guarded.client.get("/metrics", headers=bearer(TOKEN)).status_code == 200
    document = guarded.client.get("/openapi.json", headers=bearer(TOKEN)).json()
    assert document["security"] == [{"token": []}]
    assert document["paths"]["/healthz"]["get"]["security"] == []


@pytest.mark.parametrize("headers", [{}, bearer("wrong"), bearer(TOKEN, "Basic"), bearer(TOKEN + "x")])
def test_any_other_opens_nothing_but_health(guarded: Server, headers: dict[str, str]) -> None:
    for path in ("/recommend", "/v1/recommendations"):
        response = guarded.post(case(), path, headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.json()["error"]
    for path in ("/metrics", "/openapi.json", "/nowhere"):
        assert guarded.client.get(path, headers=headers).status_code == 401
    for path in ("/healthz", "/readyz"):
        assert guarded.client.get(path, headers=headers).status_code == 200
    large = b"[" + b" " * 5_000_000  # the client reads the answer although the server does not read the body
    assert guarded.post(large, headers=headers).status_code == 401


def test_the_token_is_nowhere_to_be_seen(guarded: Server) -> None:
    guarded.post(case(), headers=bearer(TOKEN))
    assert TOKEN not in guarded.log
    (worker,) = guarded.workers()
    assert TOKEN.encode() not in Path(f"/proc/{worker}/environ").read_bytes()
    assert TOKEN.encode() not in Path(f"/proc/{guarded.process.pid}/cmdline").read_bytes()


def test_tls_with_a_token_from_a_file(start: START, tmp_path: Path) -> None:
    cert, key, token = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    arguments = ("--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(token), "--workers", "1")
    server = start(*arguments, verify=ssl.create_default_context(cafile=str(cert)))
    assert server.url.startswith("https://127.0.0.1:")
    assert server.post(case(), headers=bearer(TOKEN)).status_code == 200
    assert server.post(case()).status_code == 401
    with pytest.raises(httpx.HTTPError):
        httpx.get(server.url.replace("https", "http") + "/healthz")
    assert server.end() == 0


def test_an_open_door_is_remarked_on(start: START) -> None:
    server = start("--host", "0.0.0.0", "--workers", "1", ready=False)
    wait_until(lambda: "warning: anybody who reaches this address can use it" in server.log)
    guarded = start("--host", "0.0.0.0", "--workers", "1", environment={"TUTTI_TOKEN": TOKEN}, ready=False)
    assert guarded.end() == 0
    assert "warning" not in guarded.log
