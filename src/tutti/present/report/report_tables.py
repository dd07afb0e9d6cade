"""Tables of a page, and the sections that are little else: who stays pending, pools, and notes.

Contract: pure. Long tables end with a row that says how many rows are not shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.engine.session.plan import NotConsidered
from tutti.present.report.markup import Child, Markup, el, joined
from tutti.recommend.records.recommendation import Alternative, LeftPod, PoolStatus

_ROWS = 200
_NAMES = 6


def data_table(columns: Sequence[str], rows: Sequence[Sequence[Child]]) -> Markup:
    """A table; a column whose name begins with # holds numbers."""
    kinds = ["num" if name.startswith("#") else None for name in columns]
    head = [
        el("th", name.removeprefix("#"), class_=kind, scope="col") for name, kind in zip(columns, kinds, strict=True)
    ]
    body = [
        el("tr", *(el("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows[:_ROWS]
    ]
    if len(rows) > _ROWS:
        body.append(el("tr", el("td", f"and {len(rows) - _ROWS:,} more", colspan=len(columns), class_="more")))
    return el("div", el("table", el("thead", el("tr", *head)), el("tbody", *body)), class_="scroll")


def word(text: str) -> Markup:
    """A word that is not broken while a line has room for it."""
    return el("span", text, class_="word")


def names_text(names: Sequence[str], most: int = _NAMES) -> Markup:
    """Some of the names, each in one piece, and how many there are beside them."""
    shown = names[:most]
    parts: list[Child] = [part for name in shown[:-1] for part in (word(f"{name},"), " ")]
    more = f" and {len(names) - most:,} more" if len(names) > most else None
    return joined((*parts, *map(word, shown[-1:]), more))


def pending_table(left: Sequence[LeftPod], others: Sequence[NotConsidered]) -> Markup:
    """The pods that stay pending, a row for each reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in left:
        groups.setdefault((each.gang or "", each.reason), []).append(each.pod)
    rows: list[Sequence[Child]] = [
        (f"{len(pods):,}", joined((f"gang {gang}: " if gang else None, names_text(pods))), reason)
        for (gang, reason), pods in groups.items()
    ]
    causes: dict[tuple[str, str], list[str]] = {}
    for other in others:
        causes.setdefault((other.cause, other.message), []).append(other.pod)
    for (cause, message), pods in causes.items():
        said = f"not considered: {cause}" + (f" ({message})" if message else "")
        rows.append((f"{len(pods):,}", names_text(pods), said))
    return data_table(("#Pods", "Which", "Reason"), rows)


def pools_table(statuses: Sequence[PoolStatus]) -> Markup:
    """The pools that could not be used, and remarks on the others."""
    rows = [(each.pool, "not used" if not each.eligible else "remark", each.reason) for each in statuses if each.reason]
    return data_table(("Pool", "", "Why"), rows)


def evictions_table(alternatives: Sequence[Alternative]) -> Markup:
    """Evictions that would do without a purchase."""
    rows = [(each.who, f"{len(each.evicting):,}", names_text(each.evicting)) for each in alternatives]
    return data_table(("For", "#Evictions", "Of"), rows)


def notes_list(lines: Sequence[str]) -> Markup:
    """What was said beside the answer."""
    return joined((el("ul", *(el("li", line) for line in lines), class_="remarks"),))
