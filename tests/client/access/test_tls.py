"""Connections: a server that is not the one we trust is not spoken to."""

from __future__ import annotations

import asyncio
import random
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.certificates import certificate
from tutti.client.access.cluster_access import ClusterAccess, UserAccess
from tutti.client.access.tls import tls_context
from tutti.client.api_client import ApiClient
from tutti.exceptions import ApiError, InputError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is needed to make certificates")


def ask(folder: Path, *, clients: Path | None = None, **access: object) -> str:
    """Ask a server with TLS, whose certificate is for api.internal; return its answer or the error."""
    own, key = folder / "server.crt", folder / "server.key"

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        return web.Response(text=str(dict(part[0] for part in peer["subject"])) if peer else "nobody")

    async def run() -> str:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(own, key)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        app = web.Application()
        app.router.add_get("/", answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        where = ClusterAccess(server=f"https://127.0.0.1:{port}", name="here", **access)  # type: ignore[arg-type]
        draw = random.Random(1)
        client = ApiClient(where, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
        try:
            return (await client.request("GET", "/")).decode()
        except ApiError as error:
            return f"error: {error}"
        finally:
            await client.close()
            await runner.cleanup()

    return asyncio.run(run())


def test_a_trusted_server(tmp_path: Path) -> None:
    own, _ = certificate(tmp_path, "server")
    assert ask(tmp_path, authority=own.read_bytes(), tls_server_name="api.internal") == "nobody"
    assert ask(tmp_path, authority_file=own, tls_server_name="api.internal") == "nobody"


def test_another_server(tmp_path: Path) -> None:
    own, _ = certificate(tmp_path, "server")
    other, _ = certificate(tmp_path, "other")
    assert "error" in ask(tmp_path, authority_file=other, tls_server_name="api.internal")
    assert "error" in ask(tmp_path, tls_server_name="api.internal")  # the machine's authorities do not know it
    assert "error" in ask(tmp_path, authority_file=own)  # the certificate is not for 127.0.0.1


def test_a_server_that_is_not_checked(tmp_path: Path) -> None:
    certificate(tmp_path, "server")
    assert ask(tmp_path, is_insecure=True) == "nobody"


def test_a_client_certificate(tmp_path: Path) -> None:
    own, _ = certificate(tmp_path, "server")
    jane, key = certificate(tmp_path, "jane")
    trusted = {"authority_file": own, "tls_server_name": "api.internal"}
    user = UserAccess(certificate_file=jane, key_file=key)
    assert "jane" in ask(tmp_path, clients=jane, user=user, **trusted)
    assert "error" in ask(tmp_path, clients=jane, **trusted)


def test_bad_files(tmp_path: Path) -> None:
    bad = tmp_path / "bad.crt"
    with pytest.raises(InputError, match=r"bad.crt: certificate-authority: no such file or directory"):
        tls_context(ClusterAccess(server="https://x", authority_file=bad))
    bad.write_text("hello")
    with pytest.raises(InputError, match=r"bad.crt: certificate-authority: .*PEM"):
        tls_context(ClusterAccess(server="https://x", authority_file=bad))
    with pytest.raises(InputError, match="client certificate and its key cannot be used"):
        tls_context(ClusterAccess(server="https://x", name="here"), b"hello", b"key")
    bad.write_text("")
    with pytest.raises(InputError, match=r"bad.crt: certificate-authority: .*PEM"):
        tls_context(ClusterAccess(server="https://x", authority_file=bad))


def test_comments_between_certificates(tmp_path: Path) -> None:
    own, _ = certificate(tmp_path, "server")
    own.write_text(f"\ufeff# Größe\n{own.read_text()}", "utf-8")
    assert len(tls_context(ClusterAccess(server="https://x", authority_file=own)).get_ca_certs()) == 1


def test_an_encrypted_key_is_refused(tmp_path: Path) -> None:
    """Without a question on the terminal."""
    own, key = certificate(tmp_path, "jane")
    locked = tmp_path / "locked.key"
    command = ["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", str(key), "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(InputError, match="here: the key of the client certificate is encrypted"):
        tls_context(ClusterAccess(server="https://x", name="here"), own.read_bytes(), locked.read_bytes())
