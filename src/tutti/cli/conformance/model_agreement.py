"""`tutti conformance --model`: how often the models of autoscalers do what the real ones did.

Contract: a table over all files, then the first disagreements. It measures, so it ends well whatever comes out, unless
a share is asked for: then the exit code is 1 if anything agrees less often, over all families.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tutti.cli.conformance.case_lines import Line, of_lines
from tutti.cli.printing import print_text
from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.conformance.models import ModelCheck


def measure_models(paths: Sequence[str], *, show: int, jobs: int, at_least: float | None) -> None:
    """Run the models on all files, and tell how they did."""
    from tutti.cli.conformance.model_table import below_percent, disagreement, model_table

    checks = _run(paths, jobs)
    print_text(model_table(checks))
    otherwise = [check for check in checks if not check.agrees]
    for check in otherwise[:show]:
        click.echo(f"\n{disagreement(check)}")
    if len(otherwise) > show:
        click.echo(f"\nnot shown: {len(otherwise) - show:,} more (--show {len(otherwise)})")
    short = [] if at_least is None else below_percent(checks, at_least)
    if short:
        click.echo("\n" + "\n".join(short))
        raise click.exceptions.Exit(1)


def _run(paths: Sequence[str], jobs: int) -> list[ModelCheck]:
    from tutti.cli.loading import busy

    found: list[ModelCheck] = []
    with busy("running models") as tell:
        for cases, checks in enumerate(of_lines(_check_line, paths, jobs), start=1):
            found += checks
            tell(f"{cases:,} done, {checks[0].family}")
    if not found:
        raise InputError("there is no case in it", file=", ".join(paths))
    return found


def _check_line(line: Line) -> tuple[ModelCheck, ...]:
    from tutti.conformance.models import check_line

    return check_line(*line)
