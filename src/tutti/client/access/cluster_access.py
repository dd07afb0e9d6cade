"""How to reach an API server: its address, whom to trust, and how to prove who we are.

Contract: frozen records without I/O. A secret never appears in `repr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec


class ExecCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A program that prints credentials (client.authentication.k8s.io, v1 or v1beta1)."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    """Added to the environment of this process."""
    install_hint: str = ""
    provides_cluster_info: bool = False

    def __repr__(self) -> str:
        """Return the command without arguments and environment, which may be secret."""
        return f"ExecCommand({self.command})"


class UserAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How a user proves who they are; all of it is optional."""

    token: str = ""
    token_file: Path | None = None
    """Read again and again; its token takes precedence over `token`."""
    username: str = ""
    password: str = ""
    certificate: bytes = b""
    """A client certificate, PEM."""
    key: bytes = b""
    """The key of the certificate, PEM."""
    certificate_file: Path | None = None
    key_file: Path | None = None
    command: ExecCommand | None = None
    headers: Mapping[str, str | tuple[str, ...]] = {}
    """Headers of impersonation."""

    def __repr__(self) -> str:
        """Return which credentials there are, without their values."""
        known = [field for field in self.__struct_fields__ if getattr(self, field)]
        return f"UserAccess({', '.join(known)})"


class ClusterAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach one API server as one user."""

    server: str
    """The address, such as https://10.0.0.1:6443, without a slash at the end."""
    namespace: str = "default"
    authority: bytes = b""
    """The certificates of the authorities to trust, PEM; those of the machine if empty."""
    authority_file: Path | None = None
    tls_server_name: str = ""
    """The name to check the server's certificate against, if it is not the host of `server`."""
    is_insecure: bool = False
    """Whether the server's certificate is not checked at all, as the kubeconfig asks."""
    proxy: str = ""
    user: UserAccess = UserAccess()
    name: str = ""
    """The context, or what else the user would recognise."""
