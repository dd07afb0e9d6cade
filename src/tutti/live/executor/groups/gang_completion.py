"""When the planned bindings of a gang have all succeeded, so that the status of its group may say so.

Contract: nothing here waits. A later plan of the same gang replaces an earlier one; a gang of which a binding fails is
not complete until a later plan binds the rest. A gang is forgotten when a pod is gone whose binding has not succeeded.
Belongs to the event loop.
"""

from __future__ import annotations

from tutti.engine.session.plan import Bound, GangPlan, Plan


class GangCompletion:
    """See the module's docstring; follows the gangs of one dialect."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._missing: dict[str, tuple[GangPlan, set[str]]] = {}
        """The pods of each gang whose bindings have not succeeded yet."""
        self._gang_of: dict[str, str] = {}
        """The gang of each of these pods."""

    def __len__(self) -> int:
        """Return how many gangs are not complete."""
        return len(self._missing)

    def expect(self, plan: Plan) -> None:
        """Note the gangs of which a plan binds pods, and which run whole then."""
        gangs = [each for each in plan.gangs if each.dialect == self._dialect and each.starts and each.placed]
        if not gangs:
            return
        pods: dict[str, set[str]] = {gang.gang: set() for gang in gangs}
        for bound in plan.binds:
            if bound.gang in pods:
                pods[bound.gang].add(bound.pod)
        for gang in gangs:
            self._forget(gang.gang)
            self._missing[gang.gang] = gang, pods[gang.gang]
            self._gang_of.update(dict.fromkeys(pods[gang.gang], gang.gang))

    def note_bound(self, bound: Bound) -> GangPlan | None:
        """Note that a pod is bound; return the plan of its gang if that was the last one."""
        gang, missing = self._missing.get(bound.gang or "", (None, set()))
        if bound.pod in missing:
            missing.remove(bound.pod)
            del self._gang_of[bound.pod]
        if gang is None or missing:
            return None
        del self._missing[gang.gang]
        return gang

    def note_gone(self, pod: str) -> None:
        """Note that a pod is gone."""
        gang = self._gang_of.get(pod)
        if gang is not None:
            self._forget(gang)

    def _forget(self, gang: str) -> None:
        _, pods = self._missing.pop(gang, (None, set[str]()))
        for pod in pods:
            del self._gang_of[pod]
