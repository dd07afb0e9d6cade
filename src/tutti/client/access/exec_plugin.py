"""Credentials from a program that the kubeconfig names, such as `aws eks get-token`.

Contract: the program runs without a shell, gets KUBERNETES_EXEC_INFO, and must answer in the API version that the
kubeconfig asks for. What it prints is never logged; its errors go to standard error of this process.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from tutti.client.access.cluster_access import ClusterAccess, ExecCommand
from tutti.exceptions import InputError
from tutti.kube.times import micros

TIMEOUT = 60
"""Seconds in which a program must answer."""


class ExecCredential(msgspec.Struct, frozen=True):
    """What a program answered."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: int | None = None
    """In microseconds since 1970; None if the credentials stay valid until the server rejects them."""

    def __repr__(self) -> str:
        """Return nothing secret."""
        return f"ExecCredential(expires={self.expires})"


class _Status(msgspec.Struct, rename="camel", frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, rename="camel", frozen=True):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


async def run_exec_plugin(command: ExecCommand, access: ClusterAccess) -> ExecCredential:
    """Run the program and return its credentials."""
    name = f"{access.name}: exec {command.command}"
    environment = {**os.environ, **command.env, "KUBERNETES_EXEC_INFO": _exec_info(command, access)}
    try:
        process = await asyncio.create_subprocess_exec(
            command.command,
            *command.args,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {command.install_hint}" if command.install_hint else ""
        raise InputError(f"{(error.strerror or 'cannot be run').lower()}{hint}", file=name) from None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), TIMEOUT)
    except TimeoutError:
        raise InputError(f"no answer in {TIMEOUT} s", file=name) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise InputError(f"exit code {process.returncode}", file=name)
    return _read_answer(output, command, name)


def _exec_info(command: ExecCommand, access: ClusterAccess) -> str:
    spec: dict[str, object] = {"interactive": False}
    if command.provides_cluster_info:
        cluster: dict[str, object] = {"server": access.server}
        if access.tls_server_name:
            cluster["tls-server-name"] = access.tls_server_name
        if access.is_insecure:
            cluster["insecure-skip-tls-verify"] = True
        authority = access.authority
        if not authority and access.authority_file is not None:
            authority = _read(access.authority_file)
        if authority:
            cluster["certificate-authority-data"] = authority  # msgspec writes bytes as base64
        if access.proxy:
            cluster["proxy-url"] = access.proxy
        spec["cluster"] = cluster
    info = {"apiVersion": command.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(info).decode()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        problem = (error.strerror or "cannot be read").lower()
        raise InputError(problem, file=str(file), field="certificate-authority") from None


def _read_answer(output: bytes, command: ExecCommand, name: str) -> ExecCredential:
    try:
        answer = msgspec.json.decode(output, type=_Answer)
    except msgspec.DecodeError:
        raise InputError("it did not print an ExecCredential", file=name) from None
    if answer.kind != "ExecCredential" or answer.api_version != command.api_version:
        problem = (
            f"it printed {answer.kind or 'no kind'} {answer.api_version}, not ExecCredential {command.api_version}"
        )
        raise InputError(problem, file=name)
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        raise InputError("it printed neither a token nor a certificate", file=name, field="status")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise InputError("a certificate and its key must come together", file=name, field="status")
    return ExecCredential(
        token=status.token,
        certificate=status.client_certificate_data.encode(),
        key=status.client_key_data.encode(),
        expires=micros(status.expiration_timestamp) if status.expiration_timestamp else None,
    )
