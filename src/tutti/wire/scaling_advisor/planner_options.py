"""Options of a planner request of gardener/scaling-advisor: strategies, mode, time limit.

Contract: pure. An unknown option is refused with its field. A known option that Tutti does not follow becomes a note:
there is one search for all pods and one answer with the whole plan, whatever simulator and mode are named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.recommend.records.request import RecommendOptions, Strategy
from tutti.wire.scaling_advisor.schema import PlannerText

_LEAST_COST, _LEAST_WASTE = "least-cost", "least-waste"
_INCREMENTAL = "incremental"
_SCORINGS = {_LEAST_COST: (Strategy.OPTIMAL, Strategy.LEAST_COST), _LEAST_WASTE: (Strategy.LEAST_WASTE,)}
"""By scoring strategy: the strategies of Tutti that follow it."""
_SIMULATORS = ("single-node-multi-sim", "multi-node-single-sim")
_MODES = ("all-at-once", _INCREMENTAL)
_OLDER = {"AllAtOnce": "all-at-once", "Incremental": _INCREMENTAL}
"""By name of a mode in older versions: its name now."""


def planner_options(
    text: PlannerText, options: RecommendOptions, *, file: str
) -> tuple[RecommendOptions, tuple[str, ...]]:
    """Return the options, with the request's strategy if they have none, and notes about options not followed."""
    scoring = _one_of(_SCORINGS, text.scoring_strategy, "scoringStrategy", file=file)
    simulator = _one_of(_SIMULATORS, text.simulator_strategy, "simulatorStrategy", file=file)
    named = text.advice_generation_mode or ""
    mode = _one_of(_MODES, _OLDER.get(named, named), "adviceGenerationMode", file=file)
    if scoring == _LEAST_WASTE and options.strategy is None:
        options = replace(options, strategy=Strategy.LEAST_WASTE)
    return options, tuple(_notes(scoring, simulator, mode=mode, options=options))


def _one_of(known: Collection[str], value: str | None, field: str, *, file: str) -> str:
    if value and value not in known:
        what = "mode" if field.endswith("Mode") else "strategy"
        raise InputError(f'"{value}" is not a {what} (want {" or ".join(known)})', file=file, field=field)
    return value or ""


def _notes(scoring: str, simulator: str, *, mode: str, options: RecommendOptions) -> Iterator[str]:
    if scoring and options.strategy is not None and options.strategy not in _SCORINGS[scoring]:
        yield f"scoringStrategy {scoring} is not followed: strategy {options.strategy} was asked for"
    if simulator:
        yield f"simulatorStrategy {simulator} is not looked at: one search is made for all pods"
    if mode == _INCREMENTAL:
        yield "adviceGenerationMode incremental is not looked at: the whole plan is one answer"


def most_seconds(text: PlannerText) -> float | None:
    """Return the timeout of a request in seconds; None if it has no timeout."""
    return text.timeout / 1e9 if text.timeout else None
