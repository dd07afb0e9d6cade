"""The report of a soak run: a table of what was injected and what it broke.

Contract: pure; `Findings.broken` names each broken invariant and each number that was not reached, and is empty if all
hold and the run was long enough.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from tests.controlplane.faults.checks.availability import able_intervals, refused_intervals
from tests.controlplane.faults.checks.availability import leader_changes as count_leader_changes
from tests.controlplane.faults.checks.evictions import UselessEviction, preempted_pods, useless_evictions
from tests.controlplane.faults.checks.history import History
from tests.controlplane.faults.checks.intervals import total
from tests.controlplane.faults.checks.invariants import (
    Violation,
    nodes_over_allocatable,
    pods_bound_twice,
    pods_lost,
    silent_pods,
)
from tests.controlplane.faults.checks.partial_gangs import PartialGang, partial_gangs

_SHOWN = 10
"""Violations of one kind that are printed."""


class Findings(msgspec.Struct, frozen=True):
    """The results of all checks."""

    limit: float
    """Seconds that a gang may be partial while the scheduler could act."""
    partial: list[PartialGang]
    over: list[Violation]
    twice: list[Violation]
    lost: list[Violation]
    silent: list[Violation]
    useless: list[UselessEviction]
    able_share: float
    """The share of the run in which the scheduler could act."""
    missed: list[str] = []
    """Wanted numbers that the run did not reach."""

    @property
    def broken(self) -> list[str]:
        """Return the names of the broken invariants, and the numbers that were not reached."""
        checks = {
            "gangs partial too long": [each for each in self.partial if each.able > self.limit],
            "gangs partial at the end": [each for each in self.partial if each.is_open],
            "nodes over allocatable": self.over,
            "pods bound twice": self.twice,
            "pods lost": self.lost,
            "evictions without beneficiary": self.useless,
        }
        return [*(name for name, found in checks.items() if found), *self.missed]


def find_violations(history: History, *, limit: float) -> Findings:
    """Check all invariants."""
    able = able_intervals(history)
    return Findings(
        limit=limit,
        partial=partial_gangs(history, able, refused_intervals(history)),
        over=nodes_over_allocatable(history),
        twice=pods_bound_twice(history),
        lost=pods_lost(history),
        silent=silent_pods(history),
        useless=useless_evictions(history),
        able_share=total(able) / max(history.end - history.start, 1e-9),
    )


def missed_numbers(history: History, *, faults: int, kills: int, leader_changes: int) -> list[str]:
    """Return which of the wanted numbers a run did not reach."""
    wanted = {
        "faults": (sum(fault.request != "event" for fault in history.faults), faults),
        "kills": (sum(change.event == "kill" for change in history.processes), kills),
        "changes of leader": (count_leader_changes(history), leader_changes),
    }
    return [f"only {found} of {least} {name}" for name, (found, least) in wanted.items() if found < least]


def report_lines(history: History, findings: Findings) -> list[str]:
    """Return the report, line by line."""
    gangs = {gang.name for gang in history.gangs}
    partial = findings.partial
    raw, able = _worst(partial, "seconds"), _worst(partial, "able")
    events = Counter(change.event for change in history.processes)
    writes = Counter(write.verb for write in history.writes)
    rows = [
        ("seconds", f"{history.end - history.start:.0f}, scheduler could act in {findings.able_share:.0%}"),
        ("faults", f"{_counted(Counter(f.kind for f in history.faults if f.request != 'event'))}"),
        ("faults by request", f"{_counted(Counter(f.request for f in history.faults))}"),
        ("kill -9", f"{events['kill']}, own exits {events['exit']}, freezes {events['freeze']}"),
        ("changes of leader", f"{count_leader_changes(history)}"),
        ("writes", _counted(writes)),
        ("gangs", f"{len(gangs)}, deleted {len({gang.name for gang in history.gangs if gang.ended})}"),
        ("pods", f"{len({pod.uid for pod in history.pods})}, preempted {preempted_pods(history)}"),
        *_partial_rows(partial),
        ("longest partial", f"{raw:.1f} s; while the scheduler could act {able:.1f} s (limit {findings.limit:.0f} s)"),
        ("partial at the end", f"{sum(each.is_open for each in partial)}"),
        ("nodes over allocatable", f"{len(findings.over)}"),
        ("pods bound twice", f"{len(findings.twice)}"),
        ("gangs lost", f"{len(findings.lost)}"),
        ("pods waiting silently", f"{len(findings.silent)} (no invariant)"),
        ("useless evictions", f"{len(findings.useless)} of {writes['evict'] + writes['delete']}"),
        ("result", "; ".join(findings.broken) or "all invariants hold"),
    ]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {text}" for name, text in rows] + _details(history, findings)


def _partial_rows(partial: list[PartialGang]) -> list[tuple[str, str]]:
    rows = []
    for limit in (1, 5, 10):
        raw = {each.gang for each in partial if each.seconds > limit}
        able = {each.gang for each in partial if each.able > limit}
        broken = {each.gang for each in partial if each.seconds > limit and each.was_whole}
        text = f"{len(raw)}; while the scheduler could act {len(able)}; whole before {len(broken)}"
        rows.append((f"gangs partial > {limit} s", text))
    return rows


def _worst(partial: list[PartialGang], field: str) -> float:
    return max((getattr(each, field) for each in partial), default=0.0)


def _counted(counts: Counter[str]) -> str:
    return f"{counts.total()}: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _details(history: History, findings: Findings) -> list[str]:
    """Return the worst violations, with seconds since the start of the run."""
    start = history.start
    worst = sorted((each for each in findings.partial if each.seconds > 1), key=lambda each: -each.able)
    lines = [
        f"partial: {each.gang} at {each.start - start:.1f} s for {each.seconds:.1f} s, able {each.able:.1f} s"
        + (", whole before" if each.was_whole else "")
        for each in worst[:_SHOWN]
    ]
    named = {"over": findings.over, "twice": findings.twice, "lost": findings.lost, "silent": findings.silent}
    for kind, found in named.items():
        lines += [f"{kind}: {each.name} at {each.time - start:.1f} s: {each.problem}" for each in found[:_SHOWN]]
    lines += [f"useless: {each.pod} at {each.time - start:.1f} s: {each.problem}" for each in findings.useless[:_SHOWN]]
    return lines
