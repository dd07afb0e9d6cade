"""kube-scheduler's recorded decisions: the node of each pod, the reasons against other nodes, and preemption.

Contract: `answers` makes the same decisions with Tutti's engine, in the format of the recording; `differences` compares
two answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold, Put, Remove
from tutti.conformance.case_files import Case, decode_object
from tutti.engine.config.profile_loader import load_profile
from tutti.engine.explain.node_verdicts import NodeVerdicts, node_verdicts
from tutti.engine.placement.engine import Engine
from tutti.engine.plugins.verdict import Reason
from tutti.engine.preemption.default_preemption import preempt
from tutti.kube.objects import Pod
from tutti.kube.times import micros

Answer = dict[str, Any]
_MAX_BEST_IN_SUMMARY = 20
_MINUTE = 60_000_000
"""In microseconds."""


def answers(case: Case) -> Iterator[Answer]:
    """Run a case, and yield Tutti's answer for each decision."""
    cluster = Cluster((*case.objects, *case.pending))
    profile = load_profile(case.config, file=case.name) if case.config is not None else None
    run = _CaseRun(case, Engine(cluster, profile))
    for pod in case.pending:
        yield run.place(pod)
    for step in case.steps:
        if step.place is not None:
            cluster.apply(Put(step.place))
            yield run.place(step.place)
        elif step.delete is not None:
            kind, namespace = step.delete["kind"], step.delete.get("namespace")
            key = f"{namespace}/{step.delete['name']}" if namespace else step.delete["name"]
            cluster.apply(Remove(kind, key))
        else:
            cluster.apply(Put(decode_object(step.apply)))


class _CaseRun:
    """The state of one case while it runs."""

    def __init__(self, case: Case, engine: Engine) -> None:
        self._case, self._engine = case, engine
        self._placed = 0
        self._first_start = micros(case.placed_start) if case.placed_start else None

    def place(self, pod: Pod) -> Answer:
        """Place a pod, and return the answer in the format of the recording."""
        engine, key = self._engine, pod.key
        verdicts = node_verdicts(engine, key)
        answer: Answer = {"pod": key, "feasible": list(verdicts.feasible)}
        _add_verdicts(answer, verdicts)
        start = None if self._first_start is None else self._first_start + self._placed * _MINUTE
        decision = engine.place([key], start=start, take_volumes=self._case.reserve)[0]
        if decision.node is not None:
            self._placed += 1
            answer["placed"] = decision.node
        elif verdicts.error is None and verdicts.held is None:
            self._preempt(answer, key, start)
        return _summary(answer, verdicts) if self._case.summary else answer

    def _preempt(self, answer: Answer, key: str, start: int | None) -> None:
        result = preempt(self._engine, self._engine.attempt(key))
        if result.ineligible is not None or "prefilter" in answer:
            return
        preemption: Answer = {
            "candidates": {c.node: sorted(c.victims) for c in result.candidates},
            "chosen": [c.node for c in result.chosen],
        }
        violations = {c.node: c.violations for c in result.candidates if c.violations}
        if violations:
            preemption["pdbViolations"] = violations
        answer["preemption"] = preemption
        if self._case.evict and result.chosen:
            best = result.chosen[0]
            preemption["evicted"] = sorted(best.victims)
            cluster = self._engine.cluster
            for victim in best.victims:
                cluster.apply(Remove("Pod", victim))
            cluster.apply(Hold(key, best.node))
            decision = self._engine.place([key], start=start)[0]
            self._placed += 1
            answer["placed"] = decision.node


def _add_verdicts(answer: Answer, verdicts: NodeVerdicts) -> None:
    if verdicts.held is not None:
        answer["held"] = _reason(verdicts.held)
    if verdicts.refused is not None:
        answer["prefilter"] = _reason(verdicts.refused)
    if verdicts.error is not None:
        answer["error"] = verdicts.error
    if verdicts.rejected:
        answer["rejected"] = {name: _reason(reason) for name, reason in verdicts.rejected.items()}
    if verdicts.scores:
        answer["scores"], answer["plugin_scores"] = verdicts.scores, verdicts.plugin_scores
    if verdicts.best:
        answer["best"] = list(verdicts.best)


def _reason(reason: Reason) -> Answer:
    return {"plugin": reason.plugin, "reasons": sorted(reason.messages), "resolvable": reason.resolvable}


def _summary(answer: Answer, verdicts: NodeVerdicts) -> Answer:
    best = answer.get("best", [])
    summary = {
        "pod": answer["pod"],
        "feasibleCount": len(verdicts.feasible),
        "rejectedBy": dict(Counter(r.plugin for r in verdicts.rejected.values())),
        "best": best if len(best) <= _MAX_BEST_IN_SUMMARY else None,
    }
    return summary | {name: answer[name] for name in ("prefilter", "error", "placed") if name in answer}


def differences(expected: Answer, actual: Answer) -> list[str]:
    """Return the fields in which two answers differ.

    The order of reasons does not matter, and two errors are equal whatever their texts.
    """
    left, right = _normalized(expected), _normalized(actual)
    return [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]


def _normalized(answer: Answer) -> Answer:
    fields = {name: value for name, value in answer.items() if value not in (None, {}) or name == "best"}
    if "error" in fields:
        return {"pod": fields["pod"], "error": True}
    for name in ("prefilter", "held"):
        if name in fields:
            fields[name] = {**fields[name], "reasons": sorted(fields[name]["reasons"])}
    if "rejected" in fields:
        fields["rejected"] = {node: {**r, "reasons": sorted(r["reasons"])} for node, r in fields["rejected"].items()}
    if fields.get("best") == []:
        del fields["best"]
    return fields
