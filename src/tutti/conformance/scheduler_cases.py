"""kube-scheduler's recorded answers, asked again: where each pod goes, why not elsewhere, and whom it would evict."""

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
_SHORT = 20
_MINUTE = 60_000_000


def answers(case: Case) -> Iterator[Answer]:
    """Give Tutti's answers to a case, one after the other, as the case goes on."""
    cluster = Cluster((*case.objects, *case.pending))
    profile = load_profile(case.config, file=case.name) if case.config is not None else None
    run = _Run(case, Engine(cluster, profile))
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


class _Run:
    """One case under way."""

    def __init__(self, case: Case, engine: Engine) -> None:
        self._case, self._engine = case, engine
        self._placed = 0
        self._first_start = micros(case.placed_start) if case.placed_start else None

    def place(self, pod: Pod) -> Answer:
        engine, key = self._engine, pod.key
        told = node_verdicts(engine, key)
        answer: Answer = {"pod": key, "feasible": list(told.feasible)}
        _tell(answer, told)
        start = None if self._first_start is None else self._first_start + self._placed * _MINUTE
        decision = engine.place([key], start=start, take_volumes=self._case.reserve)[0]
        if decision.node is not None:
            self._placed += 1
            answer["placed"] = decision.node
        elif told.error is None and told.held is None:
            self._preempt(answer, key, start)
        return _summary(answer, told) if self._case.summary else answer

    def _preempt(self, answer: Answer, key: str, start: int | None) -> None:
        found = preempt(self._engine, key)
        if found.ineligible is not None or "prefilter" in answer:
            return
        told: Answer = {
            "candidates": {c.node: sorted(c.victims) for c in found.candidates},
            "chosen": [c.node for c in found.chosen],
        }
        broken = {c.node: c.violations for c in found.candidates if c.violations}
        if broken:
            told["pdbViolations"] = broken
        answer["preemption"] = told
        if self._case.evict and found.chosen:
            best = found.chosen[0]
            told["evicted"] = sorted(best.victims)
            cluster = self._engine.cluster
            for victim in best.victims:
                cluster.apply(Remove("Pod", victim))
            cluster.apply(Hold(key, best.node))
            decision = self._engine.place([key], start=start)[0]
            self._placed += 1
            answer["placed"] = decision.node


def _tell(answer: Answer, told: NodeVerdicts) -> None:
    if told.held is not None:
        answer["held"] = _reason(told.held)
    if told.refused is not None:
        answer["prefilter"] = _reason(told.refused)
    if told.error is not None:
        answer["error"] = told.error
    if told.rejected:
        answer["rejected"] = {name: _reason(reason) for name, reason in told.rejected.items()}
    if told.scores:
        answer["scores"], answer["plugin_scores"] = told.scores, told.plugin_scores
    if told.best:
        answer["best"] = list(told.best)


def _reason(reason: Reason) -> Answer:
    return {"plugin": reason.plugin, "reasons": sorted(reason.messages), "resolvable": reason.resolvable}


def _summary(answer: Answer, told: NodeVerdicts) -> Answer:
    best = answer.get("best", [])
    short = {
        "pod": answer["pod"],
        "feasibleCount": len(told.feasible),
        "rejectedBy": dict(Counter(r.plugin for r in told.rejected.values())),
        "best": best if len(best) <= _SHORT else None,
    }
    return short | {name: answer[name] for name in ("prefilter", "error", "placed") if name in answer}


def differences(expected: Answer, got: Answer) -> list[str]:
    """Give the fields in which two answers differ; reasons are sets, of an error only that there is one counts."""
    left, right = _normal(expected), _normal(got)
    return [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]


def _normal(answer: Answer) -> Answer:
    normal = {name: value for name, value in answer.items() if value not in (None, {}) or name == "best"}
    if "error" in normal:
        return {"pod": normal["pod"], "error": True}
    for name in ("prefilter", "held"):
        if name in normal:
            normal[name] = {**normal[name], "reasons": sorted(normal[name]["reasons"])}
    if "rejected" in normal:
        normal["rejected"] = {node: {**r, "reasons": sorted(r["reasons"])} for node, r in normal["rejected"].items()}
    if normal.get("best") == []:
        del normal["best"]
    return normal
