"""Shapes of instance types as nodes: what a machine reports, and what kubelet keeps of it.

Contract: pure. The capacity is what Karpenter reckons with: memory less 7.5 % for the hypervisor. The reserve is EKS's:
a falling share of the cores, memory by the number of pods, and what evictions keep free.
"""

from __future__ import annotations

from tutti.kube.objects import Quantities
from tutti.market.instance_types import amounts, quantities
from tutti.market.price_book import InstanceShape

GPU = "nvidia.com/gpu"
STORAGE = "ephemeral-storage"
DISK = "20Gi"
"""The root disk of a node where nobody says otherwise, as EKS and Karpenter have it."""
_MIB = 2**20
_VM_OVERHEAD = 75
"""Thousandths of the memory that the hypervisor keeps."""
_CORE_SHARES = ((1, 6000), (1, 1000), (2, 500), (10**9, 250))
"""So many cores, and how many hundred-thousandths of each are kept."""


def capacity_of(shape: InstanceShape, *, disk: str | float = DISK) -> Quantities:
    """What a node of a shape reports as its capacity."""
    memory = shape.memory * (1000 - _VM_OVERHEAD) // 1000 // _MIB * _MIB
    numbers = {"cpu": shape.vcpus * 1000, "memory": memory, "pods": shape.max_pods}
    gpus = {GPU: shape.gpus} if shape.gpus else {}
    return quantities(numbers | amounts({STORAGE: disk}) | gpus)


def reserve_of(shape: InstanceShape, capacity: Quantities) -> Quantities:
    """What EKS keeps of a node for kubelet, the system and eviction."""
    left, kept = shape.vcpus, 0
    for cores, share in _CORE_SHARES:
        kept += min(left, cores) * share
        left -= min(left, cores)
    memory = (255 + 11 * shape.max_pods + 100) * _MIB
    disk = amounts(capacity).get(STORAGE, 0)
    storage = min(1024 * _MIB + disk // 10, disk)
    return quantities({"cpu": kept // 100, "memory": memory, STORAGE: storage})
