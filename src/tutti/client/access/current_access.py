"""The cluster that a command without `-f` reads: that of the kubeconfig, or the one in which this process runs.

Contract: as kubectl: --kubeconfig, else the files of $KUBECONFIG, else ~/.kube/config, else the service account of the
pod. A file or a context that the user names must exist. Without any kubeconfig, `InputError` says what to pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.in_cluster import SERVICE_ACCOUNT, in_cluster_access, is_in_cluster
from tutti.client.access.kubeconfig import default_paths, load_kubeconfig
from tutti.exceptions import InputError


def current_access(
    environment: Mapping[str, str],
    *,
    kubeconfig: str = "",
    context: str = "",
    folder: Path = SERVICE_ACCOUNT,
    takes_files: bool = True,
) -> ClusterAccess:
    """Return how to reach the cluster of a context, or of the current context."""
    paths = [Path(kubeconfig)] if kubeconfig else default_paths(environment)
    if paths:
        return load_kubeconfig(paths, context)
    if not context and is_in_cluster(environment, folder):
        return in_cluster_access(environment, folder)
    listed = environment.get("KUBECONFIG")
    where = f"KUBECONFIG ({listed}) names no file" if listed else "~/.kube/config does not exist"
    pass_file = "-f FILE with a dump, or " if takes_files else ""
    raise InputError(f"there is no cluster to read: pass {pass_file}--kubeconfig FILE; {where}")
