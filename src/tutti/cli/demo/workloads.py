"""The pods that run and wait in the example cluster of `tutti demo`.

The cluster has web services on general nodes, Spark jobs on spot nodes, training jobs and low-priority experiments on
GPU nodes, and gangs of simulations that each need a whole rack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

ZONES = ("eu-1a", "eu-1b", "eu-1c")
PRIORITIES = {"experiment": -100, "batch": 0, "service": 1000, "training": 2000}


class DemoPool(NamedTuple):
    """Equal nodes."""

    name: str
    nodes: int
    cpu: int
    memory: int
    gpus: int = 0
    taint: str = ""


class DemoWorkload(NamedTuple):
    """Equal pods of one owner; `pending` of them have no node yet."""

    namespace: str
    name: str
    pods: int
    cpu: str
    memory: str
    priority: str = "service"
    kind: str = "ReplicaSet"
    gpus: int = 0
    pool: str = "general"
    pending: int = 0
    spread: bool = False
    gate: str = ""
    scheduler: str = "default-scheduler"
    gang: bool = False
    """Whether its pods start together, in one rack."""


POOLS = (
    DemoPool("general", 300, 16, 64),
    DemoPool("memory", 44, 16, 128),
    DemoPool("spot", 84, 32, 128, taint="spot"),
    DemoPool("gpu", 36, 96, 768, gpus=8, taint="nvidia.com/gpu"),
    DemoPool("hpc", 16, 64, 256, taint="hpc"),
)
_SIZES = (("100m", "256Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("2", "4Gi"), ("3", "6Gi"))


def workloads() -> Iterator[DemoWorkload]:
    """Yield all workloads, running ones first."""
    for number in range(120):
        cpu, memory = _SIZES[number * 7 % len(_SIZES)]
        pods = 4 + number * 11 % 37
        waiting = 6 if number % 24 == 5 else 0
        yield DemoWorkload("web", f"svc-{number:03}", pods, cpu, memory, pending=waiting, spread=number % 5 == 0)
    for number in range(24):
        yield DemoWorkload("data", f"spark-{number:02}-exec", 30, "3", "11Gi", "batch", "Job", pool="spot")
    for number in range(6):
        yield DemoWorkload("data", f"cache-{number}", 9, "3", "24Gi", kind="StatefulSet", pool="memory", spread=True)
    for number in range(10):
        yield DemoWorkload("ml", f"train-{number}", 2, "80", "600Gi", "training", "Job", gpus=8, pool="gpu")
    for number in range(16):
        yield DemoWorkload("ml", f"sweep-{number:02}", 8, "10", "80Gi", "experiment", "Job", gpus=1, pool="gpu")
    for name, priority in (("ensemble-a", "experiment"), ("ensemble-b", "experiment"), ("climate", "training")):
        yield DemoWorkload("hpc", name, 4, "60", "200Gi", priority, "Job", pool="hpc", gang=True)
    yield DemoWorkload("hpc", "viewer", 2, "40", "100Gi", kind="StatefulSet", pool="hpc")
    # Pending pods: a training job that fits only if experiments are evicted, and pods that cannot be placed at all.
    yield DemoWorkload("ml", "llm-pretrain", 2, "80", "600Gi", "training", "Job", gpus=8, pool="gpu", pending=2)
    yield DemoWorkload("ml", "sweep-next", 3, "10", "80Gi", "experiment", "Job", gpus=1, pool="gpu", pending=3)
    yield DemoWorkload("data", "warehouse-load", 1, "24", "96Gi", "batch", "Job", pool="memory", pending=1)
    yield DemoWorkload("data", "nightly-report", 2, "2", "4Gi", "batch", "Job", pending=2, gate="example.com/quota")
    yield DemoWorkload("hpc", "weather", 4, "60", "200Gi", "batch", "Job", pool="hpc", pending=4, gang=True)
    yield DemoWorkload("hpc", "reactor", 3, "60", "200Gi", "experiment", "Job", pool="hpc", pending=3, gang=True)
    yield DemoWorkload("ml", "mpi-world", 4, "8", "32Gi", "batch", "Job", pending=4, scheduler="volcano")
