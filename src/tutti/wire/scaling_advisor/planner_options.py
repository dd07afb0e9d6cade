"""How a planner request of gardener/scaling-advisor wishes to be answered: strategy, mode, time.

Contract: pure. A wish that is not known is refused with its field. One that is known and not followed is told in a
note: there is one search for all pods and one answer with the whole plan, whatever simulator and mode are named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec
from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.recommend.records.request import Options, Strategy
from tutti.wire.document import first_level
from tutti.wire.scaling_advisor.text import TIMEOUT, Nanos, PlannerText

_LEAST_COST, _LEAST_WASTE = "least-cost", "least-waste"
_INCREMENTAL = "incremental"
_SCORINGS = {_LEAST_COST: (Strategy.OPTIMAL, Strategy.LEAST_COST), _LEAST_WASTE: (Strategy.LEAST_WASTE,)}
"""By what is wished for, the strategies that follow it."""
_SIMULATORS = ("single-node-multi-sim", "multi-node-single-sim")
_MODES = ("all-at-once", _INCREMENTAL)
_OLDER = {"AllAtOnce": "all-at-once", "Incremental": _INCREMENTAL}
"""What older versions call the modes."""


def wished(text: PlannerText, options: Options, *, file: str) -> tuple[Options, tuple[str, ...]]:
    """The options with what a request wishes for and they leave open, and notes about what is not followed."""
    scoring = _one_of(_SCORINGS, text.scoring_strategy, "scoringStrategy", file=file)
    simulator = _one_of(_SIMULATORS, text.simulator_strategy, "simulatorStrategy", file=file)
    given = text.advice_generation_mode or ""
    mode = _one_of(_MODES, _OLDER.get(given, given), "adviceGenerationMode", file=file)
    if scoring == _LEAST_WASTE and options.strategy is None:
        options = replace(options, strategy=Strategy.LEAST_WASTE)
    return options, tuple(_notes(scoring, simulator, mode=mode, options=options))


def _one_of(known: Collection[str], given: str | None, field: str, *, file: str) -> str:
    if given and given not in known:
        what = "mode" if field.endswith("Mode") else "strategy"
        raise InputError(f'"{given}" is not a {what} (want {" or ".join(known)})', file=file, field=field)
    return given or ""


def _notes(scoring: str, simulator: str, *, mode: str, options: Options) -> Iterator[str]:
    if scoring and options.strategy is not None and options.strategy not in _SCORINGS[scoring]:
        yield f"scoringStrategy {scoring} is not followed: strategy {options.strategy} was asked for"
    if simulator:
        yield f"simulatorStrategy {simulator} is not looked at: one search is made for all pods"
    if mode == _INCREMENTAL:
        yield "adviceGenerationMode incremental is not looked at: the whole plan is one answer"


def most_seconds(source: Source) -> float | None:
    """The most seconds that a request allows for its plan; None where it does not say, or cannot be read."""
    names = first_level(source) or {}
    key = TIMEOUT if TIMEOUT in names else next((each for each in names if each.lower() == TIMEOUT.lower()), None)
    if key is None:
        return None
    try:
        nanos = msgspec.json.decode(names[key], type=Nanos | None)
    except msgspec.DecodeError:
        return None
    return nanos / 1e9 if nanos is not None and nanos > 0 else None
