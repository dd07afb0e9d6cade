"""Files that kube-apiserver and its clients read: a signing key, the administrator's token, kubeconfigs.

Contract: standard library only. Files with secrets are readable by this user only. The administrator is in
`system:masters`, which API priority and fairness exempts; `cluster_setup.make_service_account` makes other users.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path
from typing import Any

AUDIT_POLICY = Path(__file__).with_name("audit_policy.json")
"""Bodies of bindings, evictions, deletes and lease writes; metadata of everything else; no secrets."""

_EC_KEY_START, _EC_KEY_END = bytes.fromhex("30310201010420"), bytes.fromhex("a00a06082a8648ce3d030107")
"""An ECPrivateKey of the curve P-256 (RFC 5915) before and after its 32 secret bytes, without the public key."""


def write_signing_key(path: Path) -> Path:
    """Write a new private key for the tokens of service accounts."""
    number = secrets.randbelow(1 << 255) + 1  # below the order of the curve
    key = _EC_KEY_START + number.to_bytes(32, "big") + _EC_KEY_END
    body = base64.b64encode(key).decode()
    _write_secret(path, f"-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----\n")
    return path


def write_admin_token(path: Path) -> str:
    """Write kube-apiserver's token file with one administrator; return the token."""
    token = secrets.token_urlsafe(24)
    _write_secret(path, f"{token},admin,admin,system:masters\n")
    return token


def write_kubeconfig(path: Path, *, server: str, authority: Path, token: str, namespace: str = "default") -> Path:
    """Write a kubeconfig with one context."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority.read_bytes()).decode()}
    context = {"cluster": "control-plane", "user": "user", "namespace": namespace}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "control-plane",
        "clusters": [{"name": "control-plane", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "control-plane", "context": context}],
    }
    _write_secret(path, json.dumps(config, indent=1))
    return path


def copy_kubeconfig(source: Path, path: Path, *, token: str, namespace: str = "default", server: str = "") -> Path:
    """Write a kubeconfig for the same cluster with another user, and perhaps another address."""
    config: dict[str, Any] = json.loads(source.read_text("utf-8"))
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = namespace
    if server:
        config["clusters"][0]["cluster"]["server"] = server
    _write_secret(path, json.dumps(config, indent=1))
    return path


def write_scheduler_config(path: Path, kubeconfig: Path) -> Path:
    """Write a configuration of kube-scheduler without a limit on its requests: the default of 50/s is too slow."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
    }
    path.write_text(json.dumps(config, indent=1), "utf-8")
    return path


def _write_secret(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
