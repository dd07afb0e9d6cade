"""How large a workload may be whose pods Tutti makes.

Contract: pure. `check_size` refuses a number of pods that is a slip of the pen, before anything is made: Kubernetes
itself is built for 150,000 pods in a cluster.
"""

from __future__ import annotations

from tutti.exceptions import InputError
from tutti.kube.objects import Object

MOST_PODS = 500_000
"""How many pods are made for one workload at most."""


def too_many(number: int | str) -> str:
    """What is wrong with a number of pods above the most."""
    return f"{number} is more than the {MOST_PODS} pods that Tutti makes for one workload"


def check_size(workload: Object, number: int, field: str) -> None:
    """Refuse a workload that would have more pods than are ever made."""
    if number > MOST_PODS:
        raise InputError(too_many(number), obj=f"{workload.KIND.lower()} {workload.key}", field=field)
