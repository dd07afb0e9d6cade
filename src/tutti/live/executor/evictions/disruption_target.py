"""The condition DisruptionTarget of victims: why they leave, and for whom.

A Job's podFailurePolicy can ignore failures of pods with this condition. It also tells a process that has just started
which pods its predecessor evicted, and for which preemptor.

Contract: pure. `preemptor_of` reads what `disruption_target` has written, by a scheduler of the same name.
"""

from __future__ import annotations

from tutti.engine.session.plan import Eviction
from tutti.kube.objects import Pod
from tutti.kube.times import timestamp

_TYPE, _REASON = "DisruptionTarget", "PreemptionByScheduler"
_BEFORE, _AFTER = "preempting to accommodate ", " of a higher priority"


def disruption_target(eviction: Eviction, *, scheduler_name: str, now: int) -> dict[str, str]:
    """Return the condition of a victim; `now` is the server's time in microseconds."""
    because = eviction.reason or f"{_BEFORE}{eviction.by}{_AFTER}"
    return {
        "type": _TYPE,
        "status": "True",
        "reason": _REASON,
        "message": f"{scheduler_name}: {because}",
        "lastTransitionTime": timestamp(now // 1_000_000 * 1_000_000),
    }


def preemptor_of(pod: Pod, *, scheduler_name: str) -> str | None:
    """Return the pod or gang for which a scheduler evicts a pod.

    None if the scheduler does not evict the pod; empty if it does so for another reason.
    """
    for condition in pod.status.conditions or ():
        message = condition.message or ""
        is_ours = condition.reason == _REASON and message.startswith(f"{scheduler_name}: ")
        if condition.type == _TYPE and condition.status == "True" and is_ours:
            because = message.removeprefix(f"{scheduler_name}: ")
            is_preempted = because.startswith(_BEFORE) and because.endswith(_AFTER)
            return because.removeprefix(_BEFORE).removesuffix(_AFTER) if is_preempted else ""
    return None
