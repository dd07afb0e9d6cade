"""The explanation of a gang as people read it, as `kubectl describe` would: its needs, its outcome, and its cures.

Contract: pure; records in, text and data out. In JSON and YAML an edit of a cure is `put` with a whole object, which
`-f` reads again, or `remove` with a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.explain.gang_explanation import GangExplanation, GangOutcome, GangPartStatus
from tutti.engine.explain.gang_status import GangStatus
from tutti.kube.gangs.gang import GangTopology
from tutti.present.tables import counted, table

_FEW = 20
_NAMED = 5


_LISTED = ("NAMESPACE", "NAME", "DIALECT", "MINIMUM", "RUNNING", "PENDING", "STATUS")


def gang_list_text(gangs: Iterable[GangStatus]) -> str:
    """A line for each gang."""
    return table(_LISTED, map(msgspec.structs.astuple, gangs))


# Text -----------------------------------------------------------------------------------------------------------------


def gang_text(explanation: GangExplanation, *, wide: bool) -> str:
    """The whole explanation."""
    parts = ["\n".join(f"{label + ':':<13}{text}" for label, text in _head(explanation))]
    if explanation.parts:
        parts.append(table(("PART", "MINIMUM", "RUNNING", "WAITING", "WHERE"), _part_rows(explanation.parts)))
    if explanation.domains:
        rows = [(d.name, d.nodes, f"{d.fits} of {d.wanted}", d.stopped_by or "") for d in explanation.domains]
        text = table(("DOMAIN", "NODES", "FITS", "STOPPED BY"), rows)
        more = explanation.domain_count - len(rows)
        parts.append(f"{text}\n... {counted(more, 'more domain')}" if more > 0 else text)
    if explanation.outcome.nodes and (wide or len(explanation.outcome.nodes) <= _FEW):
        parts.append(
            table(
                ("POD", "NODE"), ((_short(explanation, pod), node) for pod, node in explanation.outcome.nodes.items())
            )
        )
    if explanation.outcome.state in ("waits", "problem"):
        cures = [f"  - {cure.text}" for cure in explanation.cures]
        parts.append("\n".join(("Cures:", *cures)) if cures else f"{'Cures:':<13}none was found")
    return "\n\n".join(parts)


def _head(explanation: GangExplanation) -> Iterator[tuple[str, str]]:
    yield "Name", explanation.name
    yield "Namespace", explanation.namespace
    yield "Dialect", explanation.dialect
    yield "Priority", str(explanation.priority)
    yield "Needs", _needs(explanation)
    yield "Pods", _pods(explanation)
    yield "Eviction", {"single": "pod by pod", "all": "all pods together"}.get(explanation.disruption, "as a whole")
    before = [
        counted(number, noun)
        for number, noun in ((explanation.before.gangs, "gang"), (explanation.before.pods, "pod"))
        if number
    ]
    if before:
        come = "comes" if explanation.before.gangs + explanation.before.pods == 1 else "come"
        yield (
            "Queue",
            f"{' and '.join(before)} {come} before it",
        )
    yield "Outcome", outcome_text(explanation.outcome, explanation.namespace)


def _needs(explanation: GangExplanation) -> str:
    if explanation.problem is not None:
        return "not known"
    text = counted(explanation.minimum, "pod") + _where(explanation.topology)
    return text if explanation.maximum is None else f"{text}, at most {explanation.maximum}"


def _where(topology: GangTopology) -> str:
    text = f" in one {_label(topology.required)}" if topology.required else ""
    if topology.preferred:
        text += f"{',' if text else ''} if possible in one {' or '.join(map(_label, topology.preferred))}"
    return text


def _label(key: str) -> str:
    """A node label, with the word for it first: ``rack (example.com/rack)``."""
    domain, _, word = key.rpartition("/")
    return f"{word} ({key})" if domain else word


def _pods(explanation: GangExplanation) -> str:
    pods = explanation.pods
    rest = ((pods.gated, "gated"), (pods.terminating, "terminating"), (pods.elsewhere, "of another scheduler"))
    said = [f"{pods.running} running", f"{pods.waiting} waiting", *(f"{n} {what}" for n, what in rest if n)]
    return ", ".join(said)


def outcome_text(outcome: GangOutcome, namespace: str) -> str:
    """What becomes of a gang, in one line."""
    nodes = list(dict.fromkeys(outcome.nodes.values()))
    where = ", ".join(nodes[:_NAMED]) + (f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else "")
    shared = "".join(f" in {_label(key)} {value}" for key, value in outcome.domain.items())
    victims = [pod.removeprefix(f"{namespace}/") for pod in outcome.evicts]
    more = f" and {len(victims) - _NAMED} more" if len(victims) > _NAMED else ""
    evicting = f", evicting {', '.join(victims[:_NAMED])}{more}" if victims else ""
    if outcome.budgets_broken:
        evicting += f" and breaking {counted(outcome.budgets_broken, 'disruption budget')}"
    rest = f"; above its minimum: {outcome.message}" if outcome.message else ""
    match outcome.state:
        case "starts":
            return f"starts with {counted(len(outcome.nodes), 'pod')} on {where}{shared}{evicting}{rest}"
        case "runs":
            joins = f"; {counted(len(outcome.nodes), 'more pod')} on {where}{evicting}" if nodes else ""
            return f"runs{shared}{joins}{rest}"
        case "leaving":
            return f"{outcome.message}: room is held on {where}{evicting}"
        case "problem":
            return f"cannot be scheduled: {outcome.message}"
    return f"waits: {outcome.message}"


def _part_rows(parts: Sequence[GangPartStatus], indent: str = "") -> Iterator[tuple[object, ...]]:
    for part in parts:
        yield f"{indent}{part.name}", part.minimum, part.running, part.waiting, _where(part.topology).strip()
        yield from _part_rows(part.parts, f"{indent}  ")


def _short(explanation: GangExplanation, pod: str) -> str:
    return pod.removeprefix(f"{explanation.namespace}/")


# Data -----------------------------------------------------------------------------------------------------------------


def gang_data(explanation: GangExplanation) -> dict[str, Any]:
    """The explanation for programs."""
    data: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(explanation, cures=()))
    data["cures"] = [
        {**msgspec.to_builtins(msgspec.structs.replace(cure, edits=())), "edits": [_edit(edit) for edit in cure.edits]}
        for cure in explanation.cures
    ]
    return data


def _edit(edit: Edit) -> dict[str, Any]:
    match edit:
        case Put():
            obj = edit.obj
            return {"put": {"apiVersion": obj.API_VERSION, "kind": obj.WIRE_KIND, **msgspec.to_builtins(obj)}}
        case Remove():
            namespace, _, name = edit.key.rpartition("/")
            return {"remove": {"kind": edit.kind, "namespace": namespace, "name": name}}
    data: dict[str, Any] = msgspec.to_builtins(edit)
    return data
