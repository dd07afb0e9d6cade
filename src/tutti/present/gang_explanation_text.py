"""The account of one gang as people read it, as `kubectl describe` would: its needs, its outcome, and its cures.

Contract: nothing is asked here; `find_gang` says which gang a user means, the rest words a `GangExplanation`. In JSON
and YAML an edit of a cure is `put` with a whole object, which `-f` reads again, or `remove` with a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.explain.gang_explanation import GangExplanation, Outcome, PartAccount
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.engine import Engine
from tutti.exceptions import InputError, NotFoundError
from tutti.kube.gangs.gang import Topology
from tutti.present.tables import counted, structured, table

KINDS = frozenset(("gang", "gangs", "podgroup", "podgroups", "pg"))
"""What may stand before the slash."""
_FEW = 20
_NAMED = 5


def find_gang(cluster: Cluster, name: str, namespace: str | None) -> str:
    """The key of the gang that a user means; a group within a larger gang stands for that."""
    gangs = Gangs(cluster)
    named = zip(cluster.groups.keys, cluster.groups.members, strict=True)
    roots = {key: gangs.key_of(min(rows)) for key, rows in named if rows}
    known = {**{key: root or key for key, root in roots.items()}, **{root: root for root in roots.values() if root}}
    inside = {key: root for key, root in known.items() if namespace is None or key.partition("/")[0] == namespace}
    found = sorted({root for key, root in inside.items() if key.partition("/")[2] == name})
    if len(found) > 1:
        places = ", ".join(key.partition("/")[0] for key in found)
        raise InputError(f"gang {name!r} is in several namespaces ({places}): choose one with -n")
    if not found:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        raise NotFoundError(f"gang {name!r} is not in {where}: {_hint(name, sorted(inside))}")
    return found[0]


def _hint(name: str, keys: Sequence[str]) -> str:
    names = list(dict.fromkeys(key.partition("/")[2] for key in keys))
    if not names:
        return "no pod names a gang there"
    close = get_close_matches(name, names, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"there are {', '.join(names[:_NAMED])}{more}"


_LISTED = ("NAMESPACE", "NAME", "DIALECT", "MINIMUM", "RUNNING", "PENDING", "STATUS")


def gang_list(engine: Engine, namespace: str | None, form: str) -> str:
    """A line for each gang, or the same as data."""
    cluster, gangs = engine.cluster, Gangs(engine.cluster)
    rows = []
    every = gangs.keys()
    for key in every:
        place, _, name = key.partition("/")
        if namespace not in (None, place):
            continue
        pods = cluster.pods
        standing = gangs.standing(key, [row for row in gangs.rows(key) if pods.node_names[row] is None])
        gang, lacks = standing.gang, standing.need().least
        status = "Refused" if gang.problem is not None else "Pending" if lacks else "Running"
        counts = (gang.minimum, len(standing.running), len(standing.waiting))
        rows.append((place, name, gang.dialect, *counts, status))
    if not rows:
        raise NotFoundError(
            f"no pod names a gang in {f'namespace {namespace} of the input' if namespace else 'the input'}"
        )
    if form in ("json", "yaml"):
        names = [name.lower() for name in _LISTED]
        return structured([dict(zip(names, row, strict=True)) for row in rows], form)
    return table(_LISTED, rows)


# Text -----------------------------------------------------------------------------------------------------------------


def gang_text(told: GangExplanation, *, wide: bool) -> str:
    """The whole account."""
    parts = ["\n".join(f"{label + ':':<13}{text}" for label, text in _head(told))]
    if told.parts:
        parts.append(table(("PART", "MINIMUM", "RUNNING", "WAITING", "WHERE"), _part_rows(told.parts)))
    if told.domains:
        rows = [(d.name, d.nodes, f"{d.fits} of {d.wanted}", d.stopped_by or "") for d in told.domains]
        text = table(("DOMAIN", "NODES", "FITS", "STOPPED BY"), rows)
        more = told.domain_count - len(rows)
        parts.append(f"{text}\n... {counted(more, 'more domain')}" if more > 0 else text)
    if told.outcome.nodes and (wide or len(told.outcome.nodes) <= _FEW):
        parts.append(table(("POD", "NODE"), ((_short(told, pod), node) for pod, node in told.outcome.nodes.items())))
    if told.outcome.state in ("waits", "problem"):
        cures = [f"  - {cure.text}" for cure in told.cures]
        parts.append("\n".join(("Cures:", *cures)) if cures else f"{'Cures:':<13}none was found")
    return "\n\n".join(parts)


def _head(told: GangExplanation) -> Iterator[tuple[str, str]]:
    yield "Name", told.name
    yield "Namespace", told.namespace
    yield "Dialect", told.dialect
    yield "Priority", str(told.priority)
    yield "Needs", _needs(told)
    yield "Pods", _pods(told)
    yield "Eviction", {"single": "pod by pod", "all": "all pods together"}.get(told.disruption, "as a whole")
    before = [
        counted(number, noun) for number, noun in ((told.before.gangs, "gang"), (told.before.pods, "pod")) if number
    ]
    if before:
        come = "comes" if told.before.gangs + told.before.pods == 1 else "come"
        yield (
            "Queue",
            f"{' and '.join(before)} {come} before it",
        )
    yield "Outcome", outcome_text(told.outcome, told.namespace)


def _needs(told: GangExplanation) -> str:
    if told.problem is not None:
        return "not known"
    text = counted(told.minimum, "pod") + _where(told.topology)
    return text if told.maximum is None else f"{text}, at most {told.maximum}"


def _where(topology: Topology) -> str:
    text = f" in one {_label(topology.required)}" if topology.required else ""
    if topology.preferred:
        text += f"{',' if text else ''} if possible in one {' or '.join(map(_label, topology.preferred))}"
    return text


def _label(key: str) -> str:
    """A node label, with the word for it first: ``rack (example.com/rack)``."""
    domain, _, word = key.rpartition("/")
    return f"{word} ({key})" if domain else word


def _pods(told: GangExplanation) -> str:
    pods = told.pods
    rest = ((pods.gated, "gated"), (pods.terminating, "terminating"), (pods.elsewhere, "of another scheduler"))
    said = [f"{pods.running} running", f"{pods.waiting} waiting", *(f"{n} {what}" for n, what in rest if n)]
    return ", ".join(said)


def outcome_text(outcome: Outcome, namespace: str) -> str:
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


def _part_rows(parts: Sequence[PartAccount], indent: str = "") -> Iterator[tuple[object, ...]]:
    for part in parts:
        yield f"{indent}{part.name}", part.minimum, part.running, part.waiting, _where(part.topology).strip()
        yield from _part_rows(part.parts, f"{indent}  ")


def _short(told: GangExplanation, pod: str) -> str:
    return pod.removeprefix(f"{told.namespace}/")


# Data -----------------------------------------------------------------------------------------------------------------


def gang_data(told: GangExplanation, form: str) -> str:
    """The account as JSON or YAML."""
    data = msgspec.to_builtins(msgspec.structs.replace(told, cures=()))
    data["cures"] = [
        {**msgspec.to_builtins(msgspec.structs.replace(cure, edits=())), "edits": [_edit(edit) for edit in cure.edits]}
        for cure in told.cures
    ]
    return structured(data, form)


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
