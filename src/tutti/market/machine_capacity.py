"""The capacity of a machine as a node, and the amounts that EKS reserves of it.

Contract: pure. The capacity is computed as Karpenter does: memory less 7.5 % for the hypervisor. The reserve is EKS's:
a falling share of the cores, memory by the number of pods, and the eviction threshold.
"""

from __future__ import annotations

from tutti.kube.objects import Quantities
from tutti.market.instance_types import amounts, quantities
from tutti.market.price_book import InstanceShape

GPU = "nvidia.com/gpu"
STORAGE = "ephemeral-storage"
DISK = "20Gi"
"""The default root disk of a node, as in EKS and Karpenter."""
_MIB = 2**20
_VM_OVERHEAD = 75
"""Thousandths of the memory that the hypervisor keeps."""
_CORE_SHARES = ((1, 6000), (1, 1000), (2, 500), (10**9, 250))
"""Number of cores, and the hundred-thousandths of each that are reserved."""


def capacity_of(shape: InstanceShape, *, disk: str | float = DISK) -> Quantities:
    """Return the capacity that a node of a shape reports."""
    memory = shape.memory * (1000 - _VM_OVERHEAD) // 1000 // _MIB * _MIB
    numbers = {"cpu": shape.vcpus * 1000, "memory": memory, "pods": shape.max_pods}
    gpus = {GPU: shape.gpus} if shape.gpus else {}
    return quantities(numbers | amounts({STORAGE: disk}) | gpus)


def reserve_of(shape: InstanceShape, capacity: Quantities) -> Quantities:
    """Return the amounts that EKS reserves of a node for kubelet, the system and eviction."""
    remaining_cores, reserved_cpu = shape.vcpus, 0
    for cores, share in _CORE_SHARES:
        reserved_cpu += min(remaining_cores, cores) * share
        remaining_cores -= min(remaining_cores, cores)
    memory = (255 + 11 * shape.max_pods + 100) * _MIB
    disk = amounts(capacity).get(STORAGE, 0)
    storage = min(1024 * _MIB + disk // 10, disk)
    return quantities({"cpu": reserved_cpu // 100, "memory": memory, STORAGE: storage})
