"""The answer of `tutti recommend` on standard output, in any of its forms.

Contract: tables are parts separated by an empty line: what to buy, who is where then (`--apply`), what can go
(`--down`), what others would buy and take away (`--compare`). What was not asked for leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from tutti.present.recommendation_names import recommendation_names
from tutti.present.tables import structured
from tutti.recommend.pending_pods import not_considered
from tutti.wire.tutti_api.build_response import recommendation_answer

if TYPE_CHECKING:
    from tutti.app.compare import Beside
    from tutti.recommend.records.recommendation import Recommendation
    from tutti.recommend.records.request import Request


def print_answer(answer: Recommendation, request: Request, *, form: str, applied: bool, others: Beside | None) -> None:
    """Print it; `others` is None when nobody asked."""
    if form in ("json", "yaml"):
        click.echo(_data(answer, request, form=form, applied=applied, others=others))
        return
    if not answer.pods and not not_considered(request):
        click.echo("No pending pods found.", err=True)
    if form == "name":
        if lines := recommendation_names(answer):
            click.echo(lines)
        return
    parts = list(_tables(answer, request, wide=form == "wide", applied=applied, others=others))
    if parts:
        click.echo("\n\n".join(parts))


def _data(answer: Recommendation, request: Request, *, form: str, applied: bool, others: Beside | None) -> str:
    data = msgspec.to_builtins(recommendation_answer(answer, request.catalogue.currency))
    if applied:
        from tutti.app.after_purchase import after_purchase
        from tutti.present.plan_table import plan_data

        data["plan"] = plan_data(after_purchase(answer, request).plan)
    if others is not None:
        from tutti.present.comparison_text import comparison_data

        data["comparison"] = comparison_data(others.purchases, request.catalogue.currency)
    if others is not None and others.removals is not None:
        from tutti.present.scale_down_comparison_text import beside_data

        data["scaleDownComparison"] = [beside_data(others.removals, request.catalogue.currency)]
    return structured(data, form)


def _tables(
    answer: Recommendation, request: Request, *, wide: bool, applied: bool, others: Beside | None
) -> Iterator[str]:
    aside = not_considered(request)
    if answer.pods or aside:
        from tutti.present.recommendation_text import recommendation_text

        yield recommendation_text(answer, request, aside, wide=wide)
    if applied and answer.pods:
        from tutti.app.after_purchase import after_purchase

        yield after_purchase(answer, request).text(wide=wide)
    if answer.down is not None:
        from tutti.present.scale_down_text import down_text

        yield down_text(answer.down, wide=wide)
    if others is not None and others.purchases:
        from tutti.present.comparison_text import comparison_text

        yield comparison_text(others.purchases, answer)
    if others is not None and others.removals is not None and answer.down is not None:
        from tutti.present.scale_down_comparison_text import beside_text

        yield beside_text(answer.down, others.removals)
