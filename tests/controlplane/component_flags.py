"""The flags of each program of a control plane, and the options that choose them.

Contract: pure; every program listens on 127.0.0.1 only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.server_files import AUDIT_POLICY

HOST = "127.0.0.1"
_GANG_GATES = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
_GANG_APIS = "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"


@dataclass(frozen=True, kw_only=True)
class ControlPlaneOptions:
    """Which parts run beside etcd and kube-apiserver, and how."""

    controller_manager: bool = False
    """Makes the pods of Jobs, the status of budgets, service accounts; removes owned objects and namespaces."""
    scheduler: bool = False
    scheduler_config: Path | None = None
    """A KubeSchedulerConfiguration that names the kubeconfig itself; without one, the default profile runs."""
    kwok: bool = False
    """Simulates the kubelets of all nodes: bound pods run, deleted pods end."""
    kwok_stages: Path | None = None
    """What kwok's kubelets do; without a file, its fast stages."""
    native_gangs: bool = False
    """Enables the APIs and gates of Kubernetes' own gangs, in kube-apiserver, controller manager and scheduler."""
    audit: bool = False
    """Logs requests to `ControlPlane.audit_log` by `audit_policy.json`."""
    etcd_flags: tuple[str, ...] = ()
    api_server_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()

    @property
    def gates(self) -> tuple[str, ...]:
        """The feature gates that kube-apiserver, controller manager and scheduler share."""
        return (_GANG_GATES,) if self.native_gangs else ()


def etcd_flags(options: ControlPlaneOptions, *, data: Path, client_port: int, peer_port: int) -> list[str]:
    """Return the flags of etcd."""
    client, peer = f"http://{HOST}:{client_port}", f"http://{HOST}:{peer_port}"
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # the data need not survive
        "--watch-progress-notify-interval=5s",  # as kubeadm has it: bookmarks of quiet kinds need it
        *options.etcd_flags,
    ]


def api_server_flags(
    options: ControlPlaneOptions, *, etcd: str, port: int, certificates: Path, key: Path, tokens: Path, audit_log: Path
) -> list[str]:
    """Return the flags of kube-apiserver, which writes a certificate of its own into a folder."""
    flags = [
        f"--etcd-servers={etcd}",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1000",
        *options.gates,
    ]
    if options.native_gangs:
        flags.append(_GANG_APIS)
    if options.audit:
        # A log that is never rotated: its readers need to know one file only.
        flags += [f"--audit-policy-file={AUDIT_POLICY}", f"--audit-log-path={audit_log}", "--audit-log-maxsize=0"]
    return [*flags, *options.api_server_flags]


def controller_manager_flags(options: ControlPlaneOptions, *, kubeconfig: Path, key: Path, port: int) -> list[str]:
    """Return the flags of kube-controller-manager."""
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={key}",
        "--use-service-account-credentials",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        "--leader-elect=false",
        "--kube-api-qps=2000",
        "--kube-api-burst=2000",
        *options.gates,
    ]
    if not options.kwok:  # no kubelet renews any node, and all nodes stay ready
        flags.append("--node-monitor-grace-period=24h")
    return [*flags, *options.controller_manager_flags]


def scheduler_flags(options: ControlPlaneOptions, *, config: Path, port: int) -> list[str]:
    """Return the flags of kube-scheduler."""
    return [f"--config={config}", f"--bind-address={HOST}", f"--secure-port={port}", *options.gates]


def kwok_flags(*, kubeconfig: Path, stages: Path, port: int) -> list[str]:
    """Return the flags of kwok."""
    address = f"{HOST}:{port}"
    return [
        f"--config={stages}",
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=true",
        f"--server-address={address}",
    ]
