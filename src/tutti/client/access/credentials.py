"""Credentials: which token or certificate proves who we are now.

Contract: `identity` is cheap unless something must be read again: a token file after a minute, certificate files when
they have changed, a program's answer when it expires or the server has rejected it. If a file cannot be read and an
older identity is known, the older one stays; `exec_credentials` says what holds for programs.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import msgspec

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.exec_credentials import ExecCredentials
from tutti.exceptions import InputError

_READ_AFTER = 60.0
"""Seconds after which a token file is read again."""


class Identity(msgspec.Struct, frozen=True):
    """What a request carries to prove who sends it."""

    authorization: str = ""
    """The value of the Authorization header."""
    certificate: bytes = b""
    key: bytes = b""

    def __repr__(self) -> str:
        """Return nothing secret."""
        kinds = [name for name in ("authorization", "certificate") if getattr(self, name)]
        return f"Identity({', '.join(kinds)})"


class Credentials:
    """See the module's docstring; `monotonic` returns seconds, `wall` microseconds since 1970."""

    def __init__(self, access: ClusterAccess, *, monotonic: Callable[[], float], wall: Callable[[], int]) -> None:
        self._user, self._monotonic = access.user, monotonic
        self._token = self._user.token
        self._read_token_at = float("-inf")
        self._pair = self._user.certificate, self._user.key
        self._pair_changed_at = (-1, -1)
        command = self._user.command
        self._program = (
            ExecCredentials(command, access, monotonic=monotonic, wall=wall) if command is not None else None
        )

    async def close(self) -> None:
        """End a program that still runs."""
        if self._program is not None:
            await self._program.close()

    async def identity(self) -> Identity:
        """Return the identity for the next request."""
        if self._program is not None:
            given = await self._program.credential()
            return Identity(_bearer(given.token), given.certificate, given.key)
        self._read_certificate()
        if self._user.token_file is not None:
            self._read_token(self._user.token_file)
        if self._token:
            authorization = _bearer(self._token)
        elif self._user.username:
            pair = f"{self._user.username}:{self._user.password}".encode()
            authorization = f"Basic {base64.b64encode(pair).decode()}"
        else:
            authorization = ""
        return Identity(authorization, *self._pair)

    def reject(self, identity: Identity) -> bool:
        """Note that the server does not accept an identity; return whether the next one may be another."""
        if self._program is not None:
            given = self._program.given
            is_latest = given is not None and Identity(_bearer(given.token), given.certificate, given.key) == identity
            return self._program.reject() if is_latest else True
        if self._user.token_file is not None:
            self._read_token_at = float("-inf")
            self._read_token(self._user.token_file)
            return _bearer(self._token) != identity.authorization
        return False

    def _read_token(self, file: Path) -> None:
        if self._monotonic() - self._read_token_at < _READ_AFTER:
            return
        try:
            token = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            token = ""
        if token:
            self._token = token
        elif not self._token:
            raise InputError("has no token", file=str(file))
        self._read_token_at = self._monotonic()

    def _read_certificate(self) -> None:
        """Read the files of the certificate if they have changed."""
        certificate_file, key_file = self._user.certificate_file, self._user.key_file
        if certificate_file is None and key_file is None:
            return
        try:
            changed_at = _changed_at(certificate_file), _changed_at(key_file)
            if changed_at == self._pair_changed_at:
                return
            certificate = certificate_file.read_bytes() if certificate_file is not None else self._user.certificate
            key = key_file.read_bytes() if key_file is not None else self._user.key
        except OSError as error:
            if self._pair[0]:
                return
            raise InputError((error.strerror or "cannot be read").lower(), file=str(error.filename)) from None
        self._pair, self._pair_changed_at = (certificate, key), changed_at


def _changed_at(file: Path | None) -> int:
    return file.stat().st_mtime_ns if file is not None else 0


def _bearer(token: str) -> str:
    return f"Bearer {token}" if token else ""
