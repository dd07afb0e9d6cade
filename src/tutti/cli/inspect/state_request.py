"""One request to a scheduler's /debug/state.

Contract: a token is only sent over TLS, to a loopback address, or through a port-forward. A refusal is a `TuttiError`
with the scheduler's own sentence; `ForbiddenError` if another namespace could be asked for.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import msgspec

from tutti.cli.inspect.leader_pod import LeaderPod
from tutti.client.api_client import ApiClient
from tutti.client.api_errors import connection_problem
from tutti.client.port_forward import PortForward
from tutti.exceptions import TuttiError
from tutti.wire.scheduler_state import SchedulerState

_PATH = "/debug/state"
_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)


class ForbiddenError(TuttiError):
    """The user may not see what was asked for."""

    exit_code = 1


class _UnansweredError(TuttiError):
    """Nobody answered in HTTP."""

    exit_code = 1


async def request_by_url(
    url: str, token: str, query: Mapping[str, str], *, authority: str | None = None
) -> SchedulerState:
    """Ask the scheduler at an address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TuttiError(f"--url {url}: want http://HOST:PORT or https://HOST:PORT")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise TuttiError(f"--url {url}: your token would be readable on the way: use https, or leave out --url")
    context = ssl.create_default_context()
    if authority is not None:
        try:
            context.load_verify_locations(cafile=authority)
        except OSError as error:
            problem = "not a certificate (PEM)" if isinstance(error, ssl.SSLError) else "cannot be read"
            raise TuttiError(f"--certificate-authority {authority}: {problem}") from None
    return await _request(url.rstrip("/"), token, query, context=context)


async def request_by_port_forward(
    client: ApiClient, pod: LeaderPod, token: str, query: Mapping[str, str]
) -> SchedulerState:
    """Ask the scheduler in a pod.

    TLS inside of the port-forward is not verified: the API server and the kubelet have led us to the pod.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with PortForward(client, pod.key, pod.port) as forward:
        url = f"{'https' if pod.has_tls else 'http'}://127.0.0.1:{forward.local_port}"
        try:
            return await _request(url, token, query, context=context)
        except _UnansweredError as error:
            raise TuttiError(f"port-forward to pod {pod.key}, port {pod.port}: {forward.problem or error}") from None


def read_token(path: str) -> str:
    """Return the token of a file."""
    try:
        token = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise TuttiError(f"--token-file {path}: cannot be read") from None
    if not token:
        raise TuttiError(f"--token-file {path}: the file has no token")
    return token


async def _request(url: str, token: str, query: Mapping[str, str], *, context: ssl.SSLContext) -> SchedulerState:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as session,
            session.get(f"{url}{_PATH}", params=query, headers=headers, ssl=context, allow_redirects=False) as answer,
        ):
            body, status = await answer.read(), answer.status
    except TimeoutError:
        raise _UnansweredError(f"{url}: no answer in time") from None
    except aiohttp.ClientError as error:
        raise _UnansweredError(f"{url}: {connection_problem(error)}") from None
    if status == 200:
        try:
            return msgspec.json.decode(body, type=SchedulerState)
        except msgspec.DecodeError:
            raise TuttiError(f"{url}: this is no scheduler of Tutti, or one of another version") from None
    sentence = body.decode("utf-8", "replace").strip()[:500] or f"status {status}"
    if status == 403:
        raise ForbiddenError(sentence)
    raise TuttiError(f"{url}: {sentence}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
