"""Error answers of the API server, and connections that fail, as `ApiError` with one line.

Contract: pure. An answer that is no Status object, as of a proxy in between, is described by its HTTP status.
"""

from __future__ import annotations

import os

import aiohttp
import msgspec

from tutti.exceptions import ApiError


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


class _Details(msgspec.Struct, rename="camel", frozen=True):
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """The error object of the API."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(Status)


def error_of_answer(body: bytes, code: int, where: str, *, retry_after: str = "") -> ApiError:
    """Return the error that an answer describes."""
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = Status()
    return api_error(status, code, where, retry_after=retry_after)


def api_error(status: Status, code: int, where: str, *, retry_after: str = "") -> ApiError:
    """Return the error that a Status object of the API describes."""
    details = status.details or _Details()
    seconds = details.retry_after_seconds
    if retry_after.isdigit():
        seconds = float(retry_after)
    text = status.message or f"status {code}"
    return ApiError(
        f"{where}: {text}",
        status=code,
        reason=status.reason,
        retry_after=seconds,
        causes=tuple(cause.reason for cause in details.causes or ()),
    )


def connection_problem(error: Exception) -> str:
    """Return what went wrong with a connection, in one line."""
    if type(error) is aiohttp.ClientConnectorError and (error.os_error.errno or 0) > 0:
        return f"Cannot connect to host {error.host}:{error.port}: {os.strerror(error.os_error.errno or 0)}"
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
