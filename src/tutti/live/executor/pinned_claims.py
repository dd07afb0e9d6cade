"""What pods are told whose claims were given to a node: no other node takes them until that is taken back.

A claim that waits for its first consumer is provisioned for the node that a plan chose. If the pod or its gang is not
bound after all, the claim keeps the pod on that node, as in kube-scheduler: only the provisioner knows whether it is at
work. The reasons of the plan count nodes; they do not name the claim.

Contract: `with_notes` adds the claims that are not bound yet to what the pods of a plan are told that lack room; all
pods of a gang are told. Belongs to the event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tutti.cluster.assumed_volumes import SELECTED_NODE
from tutti.engine.plugins.volumes import claim_name
from tutti.engine.session.plan import Plan
from tutti.kube.objects import Pod
from tutti.live.executor.waiting_reasons import Waiting
from tutti.live.newest_objects import NewestObjects

_SHOWN = 3


class PinnedClaims:
    """See the module's docstring."""

    def __init__(self, newest: NewestObjects) -> None:
        self._newest = newest

    def with_notes(self, plan: Plan, messages: Iterable[Waiting]) -> Iterator[Waiting]:
        """Yield what pods are told, with the claims that keep them or other pods of their gangs on a node."""
        pins: dict[str, list[str]] = {}
        turn_of = {each.pod: each.gang or each.pod for each in plan.unschedulable if each.waits_for == "room"}
        for pod, turn in turn_of.items():
            known = self._newest.pod(pod)
            if known is not None and known.spec.volumes:
                pins.setdefault(turn, []).extend(self._pins(known))
        for waiting in messages:
            found = pins.get(turn_of.get(waiting.pod, ""))
            yield waiting if not found else waiting._replace(message=f"{waiting.message} {_note(found)}")

    def _pins(self, pod: Pod) -> Iterator[str]:
        for volume in pod.spec.volumes or ():
            name = claim_name(pod, volume)
            claim = self._newest.claim(f"{pod.metadata.namespace}/{name}") if name else None
            if claim is not None and not claim.spec.volume_name:
                node = (claim.metadata.annotations or {}).get(SELECTED_NODE)
                if node:
                    yield f"claim {claim.key} to node {node}"


def _note(pins: list[str]) -> str:
    more = f" and {len(pins) - _SHOWN} more" if len(pins) > _SHOWN else ""
    return f"Volumes that are being provisioned tie {', '.join(pins[:_SHOWN])}{more}."
