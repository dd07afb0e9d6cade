"""An HTTP client for recommenders that take Gardener snapshots: Tutti's, or Gardener's original.

Contract: `ask_recommender` posts a snapshot and returns the answer, or raises a `TuttiError` with one line: the
address, the problem, and what to do. The client uses only the standard library; for servers on this machine it uses no
proxy.
"""

from __future__ import annotations

import re
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any, NoReturn

import msgspec

from tutti.exceptions import InputError, TuttiError
from tutti.kube.reading.sources import Source
from tutti.wire.case_folding import fault_at, fold
from tutti.wire.gardener.client_response import RecommenderAnswer

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HTML_START = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_WEB_PAGE = "with a web page: it is not a recommender"
_GATEWAYS = (502, 503, 504)
_OTHER_HOST = (62, 64)
"""OpenSSL's codes for a certificate of another host name or address."""
_MAX_CHARACTERS = 2000
"""Number of characters to read of an answer in an unexpected format."""


def endpoint(url: str) -> str:
    """Return the address to post to, for the URL of a server or of its endpoint."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TuttiError(f"{url}: want an address like http://127.0.0.1:8080")
    path = parts.path.rstrip("/")
    if not path.endswith("/recommend"):
        path += "/recommend"
    return urllib.parse.urlunsplit(parts._replace(path=f"{path}/"))


def ask_recommender(url: str, body: bytes, *, timeout: float, token: str = "") -> RecommenderAnswer:
    """Post a snapshot to a recommender, and return its answer."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    direct = urllib.parse.urlsplit(url).hostname in _LOOPBACK
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if direct else []))
    try:
        with opener.open(request, timeout=timeout) as response:
            text: bytes = response.read()
    except urllib.error.HTTPError as error:
        with error:
            _refused(url, error, has_token=bool(token))
    except urllib.error.URLError as error:
        _unreachable(url, error.reason, timeout=timeout)
    except (OSError, HTTPException) as error:
        _unreachable(url, error, timeout=timeout)
    return _parse_answer(url, text)


def _refused(url: str, error: urllib.error.HTTPError, *, has_token: bool) -> NoReturn:
    """Raise a `TuttiError` with the server's reason for an error status."""
    try:
        body = error.read(_MAX_CHARACTERS * 10)
    except (OSError, HTTPException):
        body = b""
    is_web_page = _HTML_START.match(body) is not None
    message = "" if is_web_page else _error_message(body)
    status = f"{url}: the server answers {error.code}"
    line = f"{status}: {message or error.reason}"
    if error.code in (401, 403):
        token = "another token" if has_token else "its token"
        line = f"{status}: give {token} with --token-file or in TUTTI_TOKEN"
    elif error.code == 404:
        line = f"{status}: there is no recommender at this address"
    elif is_web_page and error.code not in _GATEWAYS:
        line = f"{status} {_WEB_PAGE}"
    raise TuttiError(line) from None


def _error_message(body: bytes) -> str:
    """Return the error message in a server's answer, under any of the usual field names."""
    try:
        tree = msgspec.json.decode(body)
    except msgspec.DecodeError:
        tree = None
    if isinstance(tree, dict):
        for name in ("error", "Error", "detail", "message"):
            if isinstance(tree.get(name), str) and tree[name]:
                return _first_line(tree[name])
        return ""
    return _first_line(body[:_MAX_CHARACTERS].decode("utf-8", "replace"))


def _first_line(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return "".join(char if char.isprintable() else "?" for char in first)


def _unreachable(url: str, reason: Any, *, timeout: float) -> NoReturn:
    if isinstance(reason, TimeoutError):
        raise TuttiError(f"{url}: no answer within {timeout:g} s; give it longer with --timeout") from None
    if isinstance(reason, ConnectionRefusedError):
        hint = "start one there with `tutti recommender`, or leave out --url to start one for this run"
        raise TuttiError(f"{url}: connection refused: no recommender listens there; {hint}") from None
    if isinstance(reason, socket.gaierror):
        raise TuttiError(f"{url}: no host has this name") from None
    if isinstance(reason, ssl.SSLCertVerificationError):
        hint = "" if reason.verify_code in _OTHER_HOST else "; set SSL_CERT_FILE to the certificate of its CA (PEM)"
        raise TuttiError(f"{url}: the certificate is not trusted: {_first_line(reason.verify_message)}{hint}") from None
    if isinstance(reason, ssl.SSLError):
        problem = _first_line(reason.reason or str(reason))
        raise TuttiError(f"{url}: the server does not speak TLS ({problem}); try http://") from None
    text = _first_line(str(getattr(reason, "strerror", None) or reason)) or type(reason).__name__
    raise TuttiError(f"{url}: {text[:1].lower()}{text[1:]}") from None


def _parse_answer(url: str, text: bytes) -> RecommenderAnswer:
    source = Source(url, text)
    if _HTML_START.match(text):
        raise TuttiError(f"{url}: the server answers {_WEB_PAGE} (want JSON with recommendation.scaleUp)")
    try:
        tree = msgspec.json.decode(text)
        if not isinstance(tree, dict):
            raise InputError("want an object", file=url)
        folded = fold(tree, RecommenderAnswer)
        answer = msgspec.convert(folded, RecommenderAnswer)
    except msgspec.ValidationError as error:
        fault = fault_at(error, source, tree=folded)
        raise TuttiError(f"{url}: the answer is not a recommendation: {fault.field}: {fault.problem}") from None
    except (msgspec.DecodeError, InputError):
        raise TuttiError(f"{url}: the answer is not a recommendation (want JSON with recommendation.scaleUp)") from None
    if answer.error:
        raise TuttiError(f"{url}: the server says: {_first_line(answer.error)}")
    for index, each in enumerate(answer.recommendation.scale_up):
        if each.increment_by < 0:
            field = f"recommendation.scaleUp[{index}].incrementBy"
            raise TuttiError(f"{url}: the answer is not a recommendation: {field}: want an integer >= 0")
    return answer
