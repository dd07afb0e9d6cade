"""What kwok's kubelets do in tests of the scheduler, nearer to real kubelets than kwok's fast stages.

Pods of Jobs run until they are deleted. A pod that is deleted fails first: a Job with a podFailurePolicy keeps the pod
until it has failed, so that without this its room would never be free.

Contract: `write_kubelet_stages` needs the stages that `make control-plane` has built.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.controlplane.control_plane import binaries_folder
from tests.controlplane.scheduler.example_objects import read_objects
from tests.support.documents import Document

_IS_DELETED: Document = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}


def write_kubelet_stages(path: Path) -> Path:
    """Write the stages to a file for kwok."""
    fast = read_objects(binaries_folder() / "stages.yaml")
    kept = [each for each in fast if each["metadata"]["name"] not in ("pod-complete", "pod-delete")]
    end = _stage("pod-end", ["Pending", "Running"], {"statusTemplate": "phase: Failed\n"})
    delete = _stage("pod-delete", ["Failed", "Succeeded"], {"delete": True})
    path.write_text(yaml.safe_dump_all([*kept, end, delete]), "utf-8")
    return path


def _stage(name: str, phases: list[str], then: Document) -> Document:
    """Return a stage of pods that are being deleted."""
    has_phase = {"key": ".status.phase", "operator": "In", "values": phases}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchExpressions": [_IS_DELETED, has_phase]},
            "next": then,
        },
    }
