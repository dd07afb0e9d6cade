"""The explanation of a gang as text, in the style of `kubectl describe`: requirements, outcome and cures; and as data.

Contract: pure. In JSON and YAML each edit of a cure is either `put` with a whole object, which `-f` can read, or
`remove` with a name.
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

_MAX_LISTED_PODS = 20
_MAX_NAMES = 5


_LIST_HEADERS = ("NAMESPACE", "NAME", "DIALECT", "MINIMUM", "RUNNING", "PENDING", "STATUS")


def gang_list_text(gangs: Iterable[GangStatus]) -> str:
    """Return a table with a line for each gang."""
    return table(_LIST_HEADERS, map(msgspec.structs.astuple, gangs))


# Text -----------------------------------------------------------------------------------------------------------------


def gang_text(explanation: GangExplanation, *, wide: bool) -> str:
    """Return the whole explanation of a gang."""
    parts = ["\n".join(f"{label + ':':<13}{text}" for label, text in _head(explanation))]
    if explanation.parts:
        parts.append(table(("PART", "MINIMUM", "RUNNING", "WAITING", "WHERE"), _part_rows(explanation.parts)))
    if explanation.domains:
        rows = [(d.name, d.nodes, f"{d.fits} of {d.wanted}", d.stopped_by or "") for d in explanation.domains]
        text = table(("DOMAIN", "NODES", "FITS", "STOPPED BY"), rows)
        more = explanation.domain_count - len(rows)
        parts.append(f"{text}\n... {counted(more, 'more domain')}" if more > 0 else text)
    if explanation.outcome.nodes and (wide or len(explanation.outcome.nodes) <= _MAX_LISTED_PODS):
        parts.append(
            table(
                ("POD", "NODE"),
                ((_name_in_namespace(explanation, pod), node) for pod, node in explanation.outcome.nodes.items()),
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
    yield "Needs", _requirements(explanation)
    yield "Pods", _pod_counts(explanation)
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


def _requirements(explanation: GangExplanation) -> str:
    if explanation.problem is not None:
        return "not known"
    text = counted(explanation.minimum, "pod") + _topology_text(explanation.topology)
    return text if explanation.maximum is None else f"{text}, at most {explanation.maximum}"


def _topology_text(topology: GangTopology) -> str:
    text = f" in one {_label(topology.required)}" if topology.required else ""
    if topology.preferred:
        text += f"{',' if text else ''} if possible in one {' or '.join(map(_label, topology.preferred))}"
    return text


def _label(key: str) -> str:
    """Return a node label with its last part first: ``rack (example.com/rack)``."""
    domain, _, word = key.rpartition("/")
    return f"{word} ({key})" if domain else word


def _pod_counts(explanation: GangExplanation) -> str:
    pods = explanation.pods
    rest = ((pods.gated, "gated"), (pods.terminating, "terminating"), (pods.elsewhere, "of another scheduler"))
    counts = [f"{pods.running} running", f"{pods.waiting} waiting", *(f"{n} {what}" for n, what in rest if n)]
    return ", ".join(counts)


def outcome_text(outcome: GangOutcome, namespace: str) -> str:
    """Return the outcome of a gang in one line."""
    nodes = list(dict.fromkeys(outcome.nodes.values()))
    where = ", ".join(nodes[:_MAX_NAMES]) + (f" and {len(nodes) - _MAX_NAMES} more" if len(nodes) > _MAX_NAMES else "")
    shared = "".join(f" in {_label(key)} {value}" for key, value in outcome.domain.items())
    victims = [pod.removeprefix(f"{namespace}/") for pod in outcome.evicts]
    more = f" and {len(victims) - _MAX_NAMES} more" if len(victims) > _MAX_NAMES else ""
    evicting = f", evicting {', '.join(victims[:_MAX_NAMES])}{more}" if victims else ""
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
        yield f"{indent}{part.name}", part.minimum, part.running, part.waiting, _topology_text(part.topology).strip()
        yield from _part_rows(part.parts, f"{indent}  ")


def _name_in_namespace(explanation: GangExplanation, pod: str) -> str:
    return pod.removeprefix(f"{explanation.namespace}/")


# Data -----------------------------------------------------------------------------------------------------------------


def gang_data(explanation: GangExplanation) -> dict[str, Any]:
    """Return the explanation as data for programs."""
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
