"""`tutti conformance --model`: how often the models of autoscalers give the answers of the real programs.

Contract: prints a table over all files, then the first disagreements. The exit code is 0, except with `--at-least`:
then it is 1 if any model agrees less often than that, over all families.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tutti.cli.conformance.case_lines import Line, map_lines
from tutti.cli.printing import print_text
from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.conformance.models import ModelCheck


def measure_models(paths: Sequence[str], *, show: int, jobs: int, at_least: float | None) -> None:
    """Run the models on all files; print the table and the first disagreements."""
    from tutti.cli.conformance.model_table import below_percent, disagreement, model_table

    checks = _run(paths, jobs)
    print_text(model_table(checks))
    disagreements = [check for check in checks if not check.agrees]
    for check in disagreements[:show]:
        click.echo(f"\n{disagreement(check)}")
    if len(disagreements) > show:
        click.echo(f"\nnot shown: {len(disagreements) - show:,} more (--show {len(disagreements)})")
    failures = [] if at_least is None else below_percent(checks, at_least)
    if failures:
        click.echo("\n" + "\n".join(failures))
        raise click.exceptions.Exit(1)


def _run(paths: Sequence[str], jobs: int) -> list[ModelCheck]:
    from tutti.cli.loading import spinner

    all_checks: list[ModelCheck] = []
    with spinner("running models") as tell:
        for cases, checks in enumerate(map_lines(_check_line, paths, jobs), start=1):
            all_checks += checks
            tell(f"{cases:,} done, {checks[0].family}")
    if not all_checks:
        raise InputError("no recorded case found", file=", ".join(paths))
    return all_checks


def _check_line(line: Line) -> tuple[ModelCheck, ...]:
    from tutti.conformance.models import check_line

    return check_line(*line)
