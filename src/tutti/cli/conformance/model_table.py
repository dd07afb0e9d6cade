"""The table of `--model`: how often the models of autoscalers give the answers of the real programs.

Contract: pure. The table has a line for every model, kind of answer and family, and one for all families together.
EXACT counts answers equal to the recorded one; AGREE also counts answers that the real program gave in another run on
the same input. The percentage is that of AGREE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tutti.present.tables import table

if TYPE_CHECKING:
    from tutti.conformance.models import ModelCheck

_HEADERS = ("MODEL", "WHAT", "FAMILY", "CASES", "EXACT", "AGREE", "%")
ALL = "all"


class ModelTally:
    """The counts of one line of the table."""

    def __init__(self) -> None:
        self.cases = self.exact = self.agree = 0

    def add(self, check: ModelCheck) -> None:
        """Count a check."""
        self.cases += 1
        self.exact += check.exact
        self.agree += check.agrees

    @property
    def percent(self) -> float:
        """Percentage of checks that agree."""
        return 100 * self.agree / self.cases


def tallies(checks: Iterable[ModelCheck]) -> dict[tuple[str, str, str], ModelTally]:
    """Return the counts by model, kind of answer and family; the family of the sum is ``all``."""
    counts: dict[tuple[str, str, str], ModelTally] = {}
    for check in checks:
        for family in (check.family, ALL):
            counts.setdefault((check.model, check.part, family), ModelTally()).add(check)
    return counts


def model_table(checks: Sequence[ModelCheck]) -> str:
    """Return the table; models, kinds of answers and families are in the order of `checks`, sums after families."""
    counts, rows = tallies(checks), list[Sequence[object]]()
    for model, what in dict.fromkeys((check.model, check.part) for check in checks):
        families = dict.fromkeys(check.family for check in checks if (check.model, check.part) == (model, what))
        for family in (*families, ALL):
            tally = counts[model, what, family]
            rows.append((model, what, family, tally.cases, tally.exact, tally.agree, f"{tally.percent:.1f}%"))
    return table(_HEADERS, rows)


def below_percent(checks: Sequence[ModelCheck], percent: float) -> list[str]:
    """Return a line for every model and kind of answer that agrees less often than `percent`, over all families."""
    return [
        f"{model}, {what}: {tally.agree:,} of {tally.cases:,} agree, less than {percent:g}%"
        for (model, what, family), tally in tallies(checks).items()
        if family == ALL and tally.percent < percent
    ]


def disagreement(check: ModelCheck) -> str:
    """Return the recorded answer and the model's answer."""
    place = f", {check.place}" if check.place else ""
    answers = [
        f"  {program:<10}{_json_text(value)}"
        for program, value in (("recorded", check.recorded), ("model", check.ours))
    ]
    return "\n".join((f"{check.model}, {check.part}, case {check.case}{place}", *answers))


def _json_text(value: Any) -> str:
    import msgspec

    return "nothing" if value is None else msgspec.json.encode(value, order="sorted").decode()
