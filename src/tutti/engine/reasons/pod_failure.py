"""Failures: why a pod on its own fits nowhere, in kube-scheduler's words, and whom it could have evicted."""

from __future__ import annotations

from typing import NamedTuple

from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.preemption.default_preemption import Candidate, preempt


def fit_error(decision: Decision, after: str = "") -> str:
    """Word a refusal as kube-scheduler does; `after` is what became of preemption."""
    if decision.error is not None:
        return decision.error
    if decision.held is not None:
        return ", ".join(decision.held.messages)
    if decision.refused is not None:
        why = ", ".join(decision.refused.messages)
    else:
        why = ", ".join(sorted(f"{number} {message}" for message, number in decision.reasons.items()))
    text = f"0/{decision.nodes} nodes are available:"
    return " ".join((text, *(f"{part}." for part in (why,) if part), *(part for part in (after,) if part)))


class PodFailure(NamedTuple):
    """A refusal, and whom the pod could have evicted; `after` says why nobody."""

    decision: Decision
    candidates: tuple[Candidate, ...] = ()
    candidate: Candidate | None = None
    after: str = ""
    eligible: bool = True
    """Whether it may have others evicted; while pods that it had evicted are leaving, it need not."""

    @property
    def message(self) -> str:
        """The line that kube-scheduler would write."""
        return fit_error(self.decision, self.after)


def failure(engine: Engine, decision: Decision) -> PodFailure:
    """Look for evictions that would cure a refusal; the cluster is as before afterwards."""
    if not engine.profile.preempts or decision.error is not None or decision.held is not None:
        return PodFailure(decision)
    found = preempt(engine, decision.pod)
    if found.ineligible is not None:
        return PodFailure(decision, after=f"preemption: {found.ineligible}", eligible=False)
    if found.chosen:
        return PodFailure(decision, found.candidates, found.chosen[0])
    return PodFailure(decision, after=_preemption_failed(found.failed, decision))


def _preemption_failed(counts: dict[str, int], decision: Decision) -> str:
    return f"preemption: {fit_error(Decision(decision.pod, nodes=decision.nodes, reasons=counts))}"
