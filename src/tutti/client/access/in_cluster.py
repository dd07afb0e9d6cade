"""Access to the API server from a pod of its cluster, by the pod's service account.

Contract: the token is read again and again, because kubelets replace it; the authority is read once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tutti.client.access.cluster_access import ClusterAccess, UserAccess
from tutti.exceptions import InputError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> bool:
    """Return whether this process runs in a pod with a service account."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").is_file()


def in_cluster_access(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """Return how to reach the API server."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise InputError("KUBERNETES_SERVICE_HOST is not set: this process does not run in a pod")
    token, namespace = folder / "token", folder / "namespace"
    if not token.is_file():
        raise InputError("there is no token: does the pod have automountServiceAccountToken: false?", file=str(token))
    return ClusterAccess(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text("utf-8").strip() if namespace.is_file() else "default",
        authority_file=folder / "ca.crt",
        user=UserAccess(token_file=token),
        name="in-cluster",
    )
