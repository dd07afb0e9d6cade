"""The condition DisruptionTarget of victims: why they leave, and for whom.

A Job's podFailurePolicy can ignore failures of pods with this condition. It also tells a process that has just started
which pods its predecessor evicted, and for which preemptor. The users of the victim may not know the preemptor's
namespace, so the condition names the preemptor by the uid of its first pod.

Contract: pure. `preemptor_uid` reads what `disruption_target` has written, by a scheduler of the same name.
"""

from __future__ import annotations

from tutti.engine.session.plan import Eviction
from tutti.kube.objects import Pod
from tutti.kube.times import timestamp

_TYPE, _REASON = "DisruptionTarget", "PreemptionByScheduler"
_BEFORE, _AFTER = "preempting to accommodate pod ", " of a higher priority"


def disruption_target(eviction: Eviction, preemptor_uid: str, *, scheduler_name: str, now: int) -> dict[str, str]:
    """Return the condition of a victim; `now` is the server's time in microseconds."""
    because = eviction.reason or f"{_BEFORE}{preemptor_uid}{_AFTER}"
    return _condition("True", f"{scheduler_name}: {because}", now)


def not_disrupted(*, scheduler_name: str, now: int) -> dict[str, str]:
    """Return the condition of a pod that stays after all."""
    return _condition("False", f"{scheduler_name}: the pod is not evicted after all", now)


def _condition(status: str, message: str, now: int) -> dict[str, str]:
    return {
        "type": _TYPE,
        "status": status,
        "reason": _REASON,
        "message": message,
        "lastTransitionTime": timestamp(now // 1_000_000 * 1_000_000),
    }


def preemptor_uid(pod: Pod, *, scheduler_name: str) -> str | None:
    """Return the uid of a pod for which a scheduler evicts a pod.

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
