"""Why a single pod fits on no node, in kube-scheduler's words, and which pods it could evict."""

from __future__ import annotations

from typing import NamedTuple

from tutti.engine.placement.engine import Attempt, Decision, Engine
from tutti.engine.preemption.default_preemption import (
    BUDGETS_VIOLATED,
    VICTIM_TERMINATING,
    Candidate,
    preempt,
)
from tutti.engine.preemption.victim_rules import VictimRules


def fit_error(decision: Decision, preemption_message: str = "") -> str:
    """Return kube-scheduler's message for a refusal; `preemption_message` is the outcome of preemption."""
    if decision.error is not None:
        return decision.error
    if decision.held is not None:
        return ", ".join(decision.held.messages)
    if decision.refused is not None:
        reasons = ", ".join(decision.refused.messages)
    else:
        reasons = ", ".join(sorted(f"{count} {message}" for message, count in decision.reasons.items()))
    text = f"0/{decision.nodes} nodes are available:"
    sentences = (f"{reasons}." if reasons else "", preemption_message)
    return " ".join((text, *(sentence for sentence in sentences if sentence)))


class PodFailure(NamedTuple):
    """The refusal of a pod, and the pods that it could evict; `preemption_message` says why it can evict none."""

    decision: Decision
    candidates: tuple[Candidate, ...] = ()
    """One for each node on which evictions would make room."""
    candidate: Candidate | None = None
    """The candidate that kube-scheduler would choose."""
    preemption_message: str = ""
    eligible: bool = True
    """Whether the pod may evict other pods; it may not while its earlier victims are terminating."""
    is_blocked_by_budgets: bool = False
    """Whether evictions would make room, but every one of them would violate a hard disruption budget."""

    @property
    def waits_for_victims(self) -> bool:
        """Whether earlier victims of the pod are still terminating on the node that is held for the pod."""
        return not self.eligible and self.preemption_message == f"preemption: {VICTIM_TERMINATING}"

    @property
    def message(self) -> str:
        """The message that kube-scheduler would write."""
        return fit_error(self.decision, self.preemption_message)


def pod_failure(
    engine: Engine,
    attempt: Attempt,
    *,
    best_only: bool = False,
    rules: VictimRules | None = None,
    stuck_before: int | None = None,
) -> PodFailure:
    """Return the failure of a refused pod, with the evictions that would make room; the cluster does not change.

    With `best_only`, not all candidates are listed; `rules` say which pods may be evicted. Pods that should have left
    before `stuck_before` are neither waited for nor evicted.
    """
    decision = attempt.decision
    if not engine.profile.preempts or decision.error is not None or decision.held is not None:
        return PodFailure(decision)
    preemption = preempt(engine, attempt, best_only=best_only, rules=rules, stuck_before=stuck_before)
    if preemption.ineligible is not None:
        return PodFailure(decision, preemption_message=f"preemption: {preemption.ineligible}", eligible=False)
    if preemption.chosen:
        return PodFailure(decision, preemption.candidates, preemption.chosen[0])
    return PodFailure(
        decision,
        preemption_message=_preemption_failed(preemption.failed, decision),
        is_blocked_by_budgets=BUDGETS_VIOLATED in preemption.failed,
    )


def _preemption_failed(counts: dict[str, int], decision: Decision) -> str:
    return f"preemption: {fit_error(Decision(decision.pod, nodes=decision.nodes, reasons=counts))}"
