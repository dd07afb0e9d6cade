"""The largest number of pods of one workload.

Contract: pure. `check_size` refuses a number of pods that can only be a typing error, before any pod is created:
Kubernetes itself supports 150,000 pods in a cluster.
"""

from __future__ import annotations

from tutti.exceptions import InputError
from tutti.kube.objects import Object

MAX_PODS = 500_000
"""The largest number of pods that Tutti creates for one workload."""


def too_many_pods(number: int | str) -> str:
    """Return the error message for a number of pods above `MAX_PODS`."""
    return f"{number} is more than the {MAX_PODS} pods that Tutti makes for one workload"


def check_size(workload: Object, number: int, field: str) -> None:
    """Raise `InputError` if a workload would have more than `MAX_PODS` pods."""
    if number > MAX_PODS:
        raise InputError(too_many_pods(number), obj=f"{workload.KIND.lower()} {workload.key}", field=field)
