"""`tutti conformance`: recorded decisions of real programs, asked again of Tutti.

Contract: one table with a line per family over all files; a decision is exact when every field is as recorded. Families
that are not supported yet are listed and not counted. The exit code is 1 on any difference, 2 for a file that cannot be
read.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.conformance.formats import Difference, Outcome

_ENOUGH = 40
"""From so many cases on it pays to start more processes."""


class Family:
    """What was counted for one family."""

    def __init__(self) -> None:
        self.cases = self.decisions = self.exact = 0
        self.supported = True


@click.command("conformance")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--show", default=5, show_default=True, metavar="N", help="How many differences to print in full.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes to use; without it one per core.")
def command(paths: tuple[str, ...], show: int, jobs: int | None) -> None:
    """Compare with recorded answers of kube-scheduler.

    Each line of a FILE is one case as JSON (gzipped files are unpacked, - is standard input): a cluster, pods to
    place, and what kube-scheduler answered: feasible nodes, reasons, scores, best nodes, preemption. Exits with 1 if
    any answer differs.
    """
    families, shown = _run(paths, show, jobs or os.cpu_count() or 1)
    if not families:
        raise InputError("there is no case in it", file=", ".join(paths))
    click.echo(_table(families))
    for difference in shown:
        click.echo(f"\n{_in_full(difference)}")
    wrong = sum(family.decisions - family.exact for family in families.values() if family.supported)
    if wrong > len(shown):
        click.echo(f"\n{wrong - len(shown):,} more differences are not shown (--show {wrong} shows them)")
    if wrong:
        raise click.exceptions.Exit(1)


def _run(paths: Sequence[str], show: int, jobs: int) -> tuple[dict[str, Family], list[Difference]]:
    """Run all files; give the counts, and the first differences."""
    from tutti.cli.loading import busy

    families: dict[str, Family] = {}
    shown: list[Difference] = []
    cases = 0
    with busy("running cases") as tell:
        for outcome in _outcomes(paths, jobs):
            family = families.setdefault(outcome.family, Family())
            family.cases += 1
            family.decisions += outcome.decisions
            family.supported = outcome.supported
            family.exact += outcome.decisions - len(outcome.different)
            shown += outcome.different[: max(show - len(shown), 0)]
            cases += 1
            tell(f"{cases:,} done, {outcome.family}")
    return families, shown


def _outcomes(paths: Sequence[str], jobs: int) -> Iterator[Outcome]:
    """Run every line of every file, in order, in several processes if there are enough lines."""
    from tutti.conformance.cases import read_lines

    lines = ((path, number, line) for path in paths for number, line in read_lines(path))
    first = list(islice(lines, _ENOUGH))
    if jobs == 1 or len(first) < _ENOUGH:
        yield from map(_run_line, chain(first, lines))
        return
    from multiprocessing import Pool

    with Pool(jobs, initializer=_leave_interrupts_to_parent) as pool:  # leaving it ends the processes at once
        yield from pool.imap(_run_line, chain(first, lines), chunksize=4)


def _run_line(line: tuple[str, int, bytes]) -> Outcome:
    from tutti.conformance.formats import run_line

    return run_line(*line)


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _table(families: dict[str, Family]) -> str:
    from tutti.cli.tables import table

    rows: list[Sequence[object]] = []
    total = Family()
    for name, family in families.items():
        if not family.supported:
            rows.append((name, family.cases, family.decisions, "-", "unsupported"))
            continue
        total.cases += family.cases
        total.decisions += family.decisions
        total.exact += family.exact
        rows.append((name, family.cases, family.decisions, family.exact, _result(family)))
    rows.append(("total", total.cases, total.decisions, total.exact, _result(total)))
    return table(("FAMILY", "CASES", "DECISIONS", "EXACT", "RESULT"), rows)


def _result(family: Family) -> str:
    return "ok" if family.exact == family.decisions else "differs"


def _in_full(difference: Difference) -> str:
    """A difference with both answers, field by field."""
    pod = f", decision {difference.place + 1}, pod {difference.pod}" if difference.pod else ""
    lines = [f"case {difference.case}{pod}"]
    for name, (recorded, got) in difference.fields.items():
        lines.append(f"  {name}")
        lines += [f"    {who:<10}{text}" for who, text in zip(("recorded", "tutti"), _pair(recorded, got), strict=True)]
    return "\n".join(lines)


def _pair(recorded: Any, got: Any) -> Iterator[str]:
    import msgspec

    for value in (recorded, got):
        yield "nothing" if value is None else msgspec.json.encode(value, order="sorted").decode()
