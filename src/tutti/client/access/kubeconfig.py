"""Kubeconfig files: contexts, clusters and users, merged and resolved as kubectl does it.

Contract: the first file that has an entry of a name, or a current context, decides. Paths in a file are relative to the
folder of that file. Inline data takes precedence over a file of the same meaning. Files with certificates are only
named here; `credentials` and `tls` read them. An invalid kubeconfig raises `InputError` with file, entry and field;
messages contain no secrets.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tutti.client.access.cluster_access import ClusterAccess, ExecCommand, UserAccess
from tutti.exceptions import InputError
from tutti.kube.reading.convert import without_nulls
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MAX_SIZE = 16 << 20
_HEADER_NAME_MARKS = "!#$&'*+-.^_`|~"
"""What a header's name may have beside letters and digits; all else, and %, is escaped, as client-go does it."""


class _Env(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel", frozen=True):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Env] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _User(msgspec.Struct, rename="kebab", frozen=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: Any = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")


class _Cluster(msgspec.Struct, rename="kebab", frozen=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster = _Cluster()


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User = _User()


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context = _Context()


class _File(msgspec.Struct, rename="kebab", frozen=True):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


def default_paths(environment: Mapping[str, str]) -> list[Path]:
    """Return the files that kubectl reads without --kubeconfig; files that do not exist are left out."""
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    paths = [Path(part) for part in listed] if listed else [Path.home() / ".kube" / "config"]
    return [path for path in paths if path.is_file()]


def load_kubeconfig(paths: Sequence[Path], context: str = "") -> ClusterAccess:
    """Return how to reach the cluster of a context, or of the current one."""
    clusters: dict[str, tuple[Path, _Cluster]] = {}
    users: dict[str, tuple[Path, _User]] = {}
    contexts: dict[str, tuple[Path, _Context]] = {}
    current = context
    for path in paths:
        file = _read(path)
        current = current or file.current_context
        for named_cluster in file.clusters or ():
            clusters.setdefault(named_cluster.name, (path, named_cluster.cluster))
        for named_user in file.users or ():
            users.setdefault(named_user.name, (path, named_user.user))
        for named_context in file.contexts or ():
            contexts.setdefault(named_context.name, (path, named_context.context))
    files = ", ".join(map(str, paths))
    if not current:
        raise InputError("there is no current context: set --context", file=files, field="current-context")
    if current not in contexts:
        known = ", ".join(sorted(contexts)) or "none"
        raise InputError(f"there is no such context; known contexts: {known}", file=files, obj=f"context {current}")
    path, chosen = contexts[current]
    where = f"context {current}"
    if chosen.cluster not in clusters:
        raise InputError(f"there is no cluster {chosen.cluster!r}", file=str(path), obj=where, field="cluster")
    if chosen.user and chosen.user not in users:
        raise InputError(f"there is no user {chosen.user!r}", file=str(path), obj=where, field="user")
    user = _user(chosen.user, *users[chosen.user]) if chosen.user else UserAccess()
    access = _cluster(chosen.cluster, *clusters[chosen.cluster])
    return msgspec.structs.replace(access, namespace=chosen.namespace or "default", user=user, name=current)


def _read(path: Path) -> _File:
    try:
        if path.stat().st_size > _MAX_SIZE:
            raise InputError("too large for a kubeconfig", file=str(path))
        source = Source(str(path), path.read_bytes())
    except OSError as error:
        raise InputError((error.strerror or "cannot be read").lower(), file=str(path)) from None
    trees = [tree for tree in parse_yaml(source) if tree is not None]
    if len(trees) > 1 or (trees and not isinstance(trees[0], dict)):
        raise InputError("not a kubeconfig", file=str(path))
    try:
        return msgspec.convert(without_nulls(trees[0]) if trees else {}, _File)
    except msgspec.ValidationError as error:
        # The error names types and the field, never a value.
        raise InputError(f"not a kubeconfig: {error}", file=str(path)) from None


def _cluster(name: str, path: Path, cluster: _Cluster) -> ClusterAccess:
    where = f"cluster {name}"
    server = cluster.server.rstrip("/")
    if not server.startswith(("https://", "http://")):
        problem = "must begin with https:// or http://" if server else "is missing"
        raise InputError(problem, file=str(path), obj=where, field="server")
    if cluster.proxy_url and not cluster.proxy_url.startswith(("http://", "https://")):
        raise InputError(
            "only http:// and https:// proxies are supported", file=str(path), obj=where, field="proxy-url"
        )
    authority = _decode(cluster.certificate_authority_data, path, where, "certificate-authority-data")
    return ClusterAccess(
        server=server,
        authority=authority,
        authority_file=None if authority else _relative(cluster.certificate_authority, path),
        tls_server_name=cluster.tls_server_name,
        is_insecure=cluster.insecure_skip_tls_verify,
        proxy=cluster.proxy_url,
    )


def _user(name: str, path: Path, user: _User) -> UserAccess:
    where = f"user {name}"
    if user.auth_provider is not None:
        problem = "auth providers no longer exist in Kubernetes: use exec"
        raise InputError(problem, file=str(path), obj=where, field="auth-provider")
    certificate = _decode(user.client_certificate_data, path, where, "client-certificate-data")
    key = _decode(user.client_key_data, path, where, "client-key-data")
    return UserAccess(
        token=user.token,
        token_file=_relative(user.token_file, path),
        username=user.username,
        password=user.password,
        certificate=certificate,
        key=key,
        certificate_file=None if certificate else _relative(user.client_certificate, path),
        key_file=None if key else _relative(user.client_key, path),
        command=_exec_command(user.exec, path, where) if user.exec is not None else None,
        headers=_impersonation(user),
    )


def _exec_command(command: _Exec, path: Path, where: str) -> ExecCommand:
    if command.api_version not in _EXEC_VERSIONS:
        problem = f"{command.api_version} is not supported: use {' or '.join(_EXEC_VERSIONS)}"
        raise InputError(problem, file=str(path), obj=where, field="exec.apiVersion")
    if command.interactive_mode == "Always":
        problem = "Always is not supported: Tutti cannot ask"
        raise InputError(problem, file=str(path), obj=where, field="exec.interactiveMode")
    program = command.command
    if os.sep in program and not Path(program).is_absolute():
        program = str(path.parent.absolute() / program)
    return ExecCommand(
        api_version=command.api_version,
        command=program,
        args=tuple(command.args or ()),
        env={each.name: each.value for each in command.env or ()},
        install_hint=command.install_hint.strip(),
        provides_cluster_info=command.provide_cluster_info,
    )


def _impersonation(user: _User) -> dict[str, str | tuple[str, ...]]:
    headers: dict[str, str | tuple[str, ...]] = {}
    if user.impersonate:
        headers["Impersonate-User"] = user.impersonate
    if user.impersonate_uid:
        headers["Impersonate-Uid"] = user.impersonate_uid
    if user.impersonate_groups:
        headers["Impersonate-Group"] = tuple(user.impersonate_groups)
    for key, values in (user.impersonate_extra or {}).items():
        headers[f"Impersonate-Extra-{quote(key, safe=_HEADER_NAME_MARKS)}"] = tuple(values)
    return headers


def _relative(name: str, path: Path) -> Path | None:
    return path.parent.absolute() / name if name else None


def _decode(data: str, path: Path, where: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("not base64", file=str(path), obj=where, field=field) from None
