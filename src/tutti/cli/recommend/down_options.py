"""The options of a scale-down: `--down` and its settings.

Contract: imports only click. The command gets the arguments ``down`` (whether the option is given) and
``down_settings``; `down_of` makes the record of the settings. A setting without `--down` is a usage error.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from tutti.recommend.records.request import DownOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])
_NAMES = ("threshold", "unneeded", "unneeded_gpu", "consolidate", "payback", "least", "move_cost")


def _duration(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Return the seconds of a duration."""
    if text is None:
        return None
    from tutti.exceptions import InputError
    from tutti.kube.durations import parse_duration

    try:
        return parse_duration(text) / 1_000_000
    except InputError as error:
        raise click.BadParameter(error.problem, context, option) from None


def _money(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    from tutti.market.money import nano_dollars

    try:
        return nano_dollars(text)
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None


def _share(context: click.Context, option: click.Parameter, share: float | None) -> float | None:
    if share is not None and not (math.isfinite(share) and 0 <= share <= 1):
        raise click.BadParameter("want a share from 0 to 1.", context, option)
    return share


def down(command: _Command) -> _Command:
    """Add `--down` and its settings to a command."""

    @functools.wraps(command)
    def with_settings(*args: Any, **given: Any) -> Any:
        settings = {name: given.pop(f"down_{name}") for name in _NAMES}
        settings = {name: value for name, value in settings.items() if value is not None}
        if settings and not given["down"]:
            raise click.UsageError("--threshold, --unneeded, --payback and similar options need --down.")
        return command(*args, **given, down_settings=settings)

    options = (
        click.option("--down", is_flag=True, help="Also say which nodes to remove, and in which steps."),
        click.option(
            "--threshold", "down_threshold", type=float, callback=_share, metavar="SHARE",
            help="A node is underused up to this share of its cpu, memory or GPUs. [default: 0.5]",
        ),
        click.option(
            "--unneeded", "down_unneeded", callback=_duration, metavar="TIME",
            help="For how long a node must have been unneeded. [default: 10m]",
        ),
        click.option(
            "--unneeded-gpu", "down_unneeded_gpu", callback=_duration, metavar="TIME",
            help="The same for nodes with GPUs. [default: 5m]",
        ),
        click.option(
            "--consolidate/--no-consolidate", "down_consolidate", default=None,
            help="Whether nodes may be replaced by cheaper ones. [default: consolidate]",
        ),
        click.option(
            "--payback", "down_payback", callback=_duration, metavar="TIME",
            help="Time in which a change must pay for its moves. [default: 24h]",
        ),
        click.option(
            "--least-saving", "down_least", type=float, callback=_share, metavar="SHARE",
            help="Least saving, as a share of the price of the replaced nodes. [default: 0.05]",
        ),
        click.option(
            "--move-cost", "down_move_cost", callback=_money, metavar="DOLLARS",
            help="Cost of moving one pod. [default: 0.01]",
        ),
    )  # fmt: skip
    decorated: Any = with_settings
    for option in reversed(options):
        decorated = option(decorated)
    return cast("_Command", decorated)


def down_of(settings: dict[str, Any]) -> DownOptions:
    """Return the record of the settings, with the current time."""
    from tutti.recommend.records.request import DownOptions

    chosen = dict(settings)
    for name in ("unneeded", "unneeded_gpu"):
        if name in chosen:
            chosen[name] = int(chosen[name])
    if "payback" in chosen:
        chosen["payback"] /= 3600
    return DownOptions(now=time.time_ns() // 1000, **chosen)
