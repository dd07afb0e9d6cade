"""A client of any recommender that takes Gardener snapshots: this one, or the original.

Contract: `ask_recommender` posts a snapshot and gives the answer, or raises `TuttiError` with one line: what went wrong
at which address, and what to do. The address may be that of the server or of its endpoint. Only the standard library is
used; a server of this machine is reached without a proxy.
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
_HTML = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_FOREIGN = "with a web page: it does not speak the format of recommenders"
_GATEWAYS = (502, 503, 504)
_OTHER_HOST = (62, 64)
"""What OpenSSL calls a certificate of another name or address."""
_MOST = 2000
"""Of what a server says in another form than expected, this many characters are looked at."""


def endpoint(url: str) -> str:
    """The address to post to, for that of a server or of its endpoint."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TuttiError(f"{url}: want an address like http://127.0.0.1:8080")
    path = parts.path.rstrip("/")
    if not path.endswith("/recommend"):
        path += "/recommend"
    return urllib.parse.urlunsplit(parts._replace(path=f"{path}/"))


def ask_recommender(url: str, body: bytes, *, timeout: float, token: str = "") -> RecommenderAnswer:
    """What a recommender says about a snapshot."""
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
    return _parsed(url, text)


def _refused(url: str, error: urllib.error.HTTPError, *, has_token: bool) -> NoReturn:
    """Raise with what a server says about a request that it does not answer."""
    try:
        body = error.read(_MOST * 10)
    except (OSError, HTTPException):
        body = b""
    is_page = _HTML.match(body) is not None
    said = "" if is_page else _said(body)
    what = f"{url}: the server answers {error.code}"
    line = f"{what}: {said or error.reason}"
    if error.code in (401, 403):
        give = "another token" if has_token else "its token"
        line = f"{what}: give {give} with --token-file or in TUTTI_TOKEN"
    elif error.code == 404:
        line = f"{what}: there is no recommender at this address"
    elif is_page and error.code not in _GATEWAYS:
        line = f"{what} {_FOREIGN}"
    raise TuttiError(line) from None


def _said(body: bytes) -> str:
    """The line in which a server tells what is wrong, whatever it calls it."""
    try:
        tree = msgspec.json.decode(body)
    except msgspec.DecodeError:
        tree = None
    if isinstance(tree, dict):
        for name in ("error", "Error", "detail", "message"):
            if isinstance(tree.get(name), str) and tree[name]:
                return _line(tree[name])
        return ""
    return _line(body[:_MOST].decode("utf-8", "replace"))


def _line(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return "".join(char if char.isprintable() else "?" for char in first)


def _unreachable(url: str, reason: Any, *, timeout: float) -> NoReturn:
    if isinstance(reason, TimeoutError):
        raise TuttiError(f"{url}: no answer within {timeout:g} s; give it longer with --timeout") from None
    if isinstance(reason, ConnectionRefusedError):
        hint = "start one there with `tutti recommender`, or leave --url out and one is started for the while"
        raise TuttiError(f"{url}: connection refused: no recommender listens there; {hint}") from None
    if isinstance(reason, socket.gaierror):
        raise TuttiError(f"{url}: there is no host of this name") from None
    if isinstance(reason, ssl.SSLCertVerificationError):
        hint = "" if reason.verify_code in _OTHER_HOST else "; SSL_CERT_FILE can name the file of its CA (PEM)"
        raise TuttiError(f"{url}: the certificate is not trusted: {_line(reason.verify_message)}{hint}") from None
    if isinstance(reason, ssl.SSLError):
        said = _line(reason.reason or str(reason))
        raise TuttiError(f"{url}: no TLS with this server ({said}); is it http://?") from None
    text = _line(str(getattr(reason, "strerror", None) or reason)) or type(reason).__name__
    raise TuttiError(f"{url}: {text[:1].lower()}{text[1:]}") from None


def _parsed(url: str, text: bytes) -> RecommenderAnswer:
    source = Source(url, text)
    if _HTML.match(text):
        raise TuttiError(f"{url}: the server answers {_FOREIGN} (want JSON with recommendation.scaleUp)")
    try:
        tree = msgspec.json.decode(text)
        if not isinstance(tree, dict):
            raise InputError("want an object", file=url)
        folded = fold(tree, RecommenderAnswer)
        answer = msgspec.convert(folded, RecommenderAnswer)
    except msgspec.ValidationError as error:
        found = fault_at(error, source, tree=folded)
        raise TuttiError(f"{url}: the answer is not a recommendation: {found.field}: {found.problem}") from None
    except (msgspec.DecodeError, InputError):
        raise TuttiError(f"{url}: the answer is not a recommendation (want JSON with recommendation.scaleUp)") from None
    if answer.error:
        raise TuttiError(f"{url}: the server says: {_line(answer.error)}")
    for place, each in enumerate(answer.recommendation.scale_up):
        if each.increment_by < 0:
            field = f"recommendation.scaleUp[{place}].incrementBy"
            raise TuttiError(f"{url}: the answer is not a recommendation: {field}: want an integer >= 0")
    return answer
