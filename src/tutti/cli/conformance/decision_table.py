"""The comparison of decisions with recorded ones: a table with a line per family, and each difference in full.

Contract: pure. A decision is exact if every field is as recorded. Unsupported families are listed and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tutti.present.tables import table

if TYPE_CHECKING:
    from tutti.conformance.case_formats import Difference


class FamilyCounts:
    """The counts of one family."""

    def __init__(self) -> None:
        self.cases = self.decisions = self.exact = 0
        self.supported = True


def decision_table(families: dict[str, FamilyCounts]) -> str:
    """Return the table with a line for each family, and the total over the supported families."""
    rows: list[Sequence[object]] = []
    total = FamilyCounts()
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


def _result(family: FamilyCounts) -> str:
    return "ok" if family.exact == family.decisions else "differs"


def difference_text(difference: Difference) -> str:
    """Return a difference with both answers, field by field."""
    pod = f", decision {difference.place + 1}, pod {difference.pod}" if difference.pod else ""
    lines = [f"case {difference.case}{pod}"]
    for name, (recorded, got) in difference.fields.items():
        lines.append(f"  {name}")
        lines += [
            f"    {program:<10}{text}"
            for program, text in zip(("recorded", "tutti"), _json_texts(recorded, got), strict=True)
        ]
    return "\n".join(lines)


def _json_texts(recorded: Any, got: Any) -> Iterator[str]:
    for value in (recorded, got):
        yield "nothing" if value is None else msgspec.json.encode(value, order="sorted").decode()
