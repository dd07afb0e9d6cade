"""How often the models of other autoscalers did what the real programs did, as text.

Contract: pure. A line for every model, thing that is compared, and family, and one for all families of it. EXACT counts
the recorded answer, AGREE as well what the real program gave in another run on the same input; the share is of AGREE.
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
    """What was counted for one line of the table."""

    def __init__(self) -> None:
        self.cases = self.exact = self.agree = 0

    def add(self, check: ModelCheck) -> None:
        """Count one more."""
        self.cases += 1
        self.exact += check.exact
        self.agree += check.agrees

    @property
    def percent(self) -> float:
        """How many of a hundred agree."""
        return 100 * self.agree / self.cases


def tallies(checks: Iterable[ModelCheck]) -> dict[tuple[str, str, str], ModelTally]:
    """Counts by model, thing and family; the family is ``all`` for the sum."""
    found: dict[tuple[str, str, str], ModelTally] = {}
    for check in checks:
        for family in (check.family, ALL):
            found.setdefault((check.model, check.part, family), ModelTally()).add(check)
    return found


def model_table(checks: Sequence[ModelCheck]) -> str:
    """The table, in the order in which models, things and families came, each sum after its families."""
    counted, rows = tallies(checks), list[Sequence[object]]()
    for model, what in dict.fromkeys((check.model, check.part) for check in checks):
        families = dict.fromkeys(check.family for check in checks if (check.model, check.part) == (model, what))
        for family in (*families, ALL):
            tally = counted[model, what, family]
            rows.append((model, what, family, tally.cases, tally.exact, tally.agree, f"{tally.percent:.1f}%"))
    return table(_HEADERS, rows)


def below_percent(checks: Sequence[ModelCheck], percent: float) -> list[str]:
    """A line for everything, over all families, that agrees less often than it should."""
    return [
        f"{model}, {what}: {tally.agree:,} of {tally.cases:,} agree, less than {percent:g}%"
        for (model, what, family), tally in tallies(checks).items()
        if family == ALL and tally.percent < percent
    ]


def disagreement(check: ModelCheck) -> str:
    """What was recorded and what the model says, in full."""
    place = f", {check.place}" if check.place else ""
    said = [f"  {who:<10}{_text(value)}" for who, value in (("recorded", check.recorded), ("model", check.ours))]
    return "\n".join((f"{check.model}, {check.part}, case {check.case}{place}", *said))


def _text(value: Any) -> str:
    import msgspec

    return "nothing" if value is None else msgspec.json.encode(value, order="sorted").decode()
