"""One request to a scheduler's /debug/state.

Contract: a token is only sent over TLS, to a loopback address, or through a port-forward. A refusal is a `TuttiError`
of one line, with the scheduler's own sentence if it was the scheduler; `ForbiddenError` if another namespace could be
asked for.
"""

from __future__ import annotations

import ipaddress
import re
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
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=:-]+")
_LONGEST_SENTENCE = 500
_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)


class ForbiddenError(TuttiError):
    """The user may not see what was asked for."""


class _UnansweredError(TuttiError):
    """Nobody answered in HTTP."""


async def request_by_url(
    url: str, token: str, query: Mapping[str, str], *, authority: str | None = None
) -> SchedulerState:
    """Ask the scheduler at an address; with an authority, trust only certificates of this file."""
    address = _checked_address(url)
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as error:
        problem = "not a certificate (PEM)" if isinstance(error, ssl.SSLError) else "cannot be read"
        raise TuttiError(f"--certificate-authority {authority}: {problem}") from None
    return await _request(address, token, query, context=context)


def _checked_address(url: str) -> str:
    """Return the address of --url, to which a token may be sent."""
    shape = "want http://HOST:PORT or https://HOST:PORT"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise TuttiError(f"--url {url!r}: {shape}") from None
    if "@" in parts.netloc:  # not shown, because it may have a password
        raise TuttiError(f"--url: leave out the user: the bearer token says who you are; {shape}")
    is_complete = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not is_complete or parts.query or parts.fragment or not url.isprintable():
        raise TuttiError(f"--url {url!r}: {shape}")
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise TuttiError(f"--url {url}: your token would be readable on the way: use https, or leave out --url")
    return url.rstrip("/")


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
    return checked_token(token, f"--token-file {path}")


def checked_token(token: str, source: str) -> str:
    """Return a token that can be sent in a header."""
    if not _TOKEN.fullmatch(token):
        raise TuttiError(f"{source}: the token has spaces, line breaks or characters that no token has")
    return token


async def _request(url: str, token: str, query: Mapping[str, str], *, context: ssl.SSLContext) -> SchedulerState:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as session,
            session.get(f"{url}{_PATH}", params=query, headers=headers, ssl=context, allow_redirects=False) as answer,
        ):
            body, status, is_text = await answer.read(), answer.status, answer.content_type == "text/plain"
    except TimeoutError:
        raise _UnansweredError(f"{url}: no answer in time") from None
    except (aiohttp.ClientError, ValueError) as error:  # ValueError: a host that is no name
        raise _UnansweredError(f"{url}: {connection_problem(error)}") from None
    if status == 200:
        try:
            return msgspec.json.decode(body, type=SchedulerState)
        except msgspec.DecodeError:
            raise TuttiError(f"{url}: this is no scheduler of Tutti, or one of another version") from None
    text = body.decode("utf-8", "replace").strip()
    if is_text and len(text) <= _LONGEST_SENTENCE and text.isprintable():
        if status == 403:
            raise ForbiddenError(text)
        raise TuttiError(f"{url}: {text}")
    raise TuttiError(f"{url}: status {status}: this is no scheduler of Tutti")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
