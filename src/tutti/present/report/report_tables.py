"""HTML tables, and the sections that consist of a table or a list: pending pods, pools, evictions, notes.

Contract: pure. A long table ends with a row that has the number of rows that are not shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.engine.session.plan import NotConsidered
from tutti.present.report.markup import Child, Markup, el, joined
from tutti.recommend.records.recommendation import Alternative, LeftPod, PoolStatus

_MAX_ROWS = 200
_MAX_NAMES = 6


def data_table(columns: Sequence[str], rows: Sequence[Sequence[Child]]) -> Markup:
    """Return a table; a column whose name begins with # holds numbers."""
    kinds = ["num" if name.startswith("#") else None for name in columns]
    head = [
        el("th", name.removeprefix("#"), class_=kind, scope="col") for name, kind in zip(columns, kinds, strict=True)
    ]
    body = [
        el("tr", *(el("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows[:_MAX_ROWS]
    ]
    if len(rows) > _MAX_ROWS:
        body.append(el("tr", el("td", f"and {len(rows) - _MAX_ROWS:,} more", colspan=len(columns), class_="more")))
    return el("div", el("table", el("thead", el("tr", *head)), el("tbody", *body)), class_="scroll")


def unbroken(text: str) -> Markup:
    """Return a text that the browser does not break while it fits a line."""
    return el("span", text, class_="word")


def names_text(names: Sequence[str], most: int = _MAX_NAMES) -> Markup:
    """Return the first names, each unbroken, and the number of the rest."""
    shown = names[:most]
    parts: list[Child] = [part for name in shown[:-1] for part in (unbroken(f"{name},"), " ")]
    more = f" and {len(names) - most:,} more" if len(names) > most else None
    return joined((*parts, *map(unbroken, shown[-1:]), more))


def pending_table(left: Sequence[LeftPod], others: Sequence[NotConsidered]) -> Markup:
    """Return the pods that stay pending, with a row for each reason."""
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
        reason = f"not considered: {cause}" + (f" ({message})" if message else "")
        rows.append((f"{len(pods):,}", names_text(pods), reason))
    return data_table(("#Pods", "Which", "Reason"), rows)


def pools_table(statuses: Sequence[PoolStatus]) -> Markup:
    """Return the pools that could not be used, and remarks on other pools."""
    rows = [(each.pool, "not used" if not each.eligible else "remark", each.reason) for each in statuses if each.reason]
    return data_table(("Pool", "", "Why"), rows)


def evictions_table(alternatives: Sequence[Alternative]) -> Markup:
    """Return evictions that make a purchase unnecessary."""
    rows = [(each.who, f"{len(each.evicting):,}", names_text(each.evicting)) for each in alternatives]
    return data_table(("For", "#Evictions", "Of"), rows)


def notes_list(lines: Sequence[str]) -> Markup:
    """Return the notes of the recommendation as a list."""
    return joined((el("ul", *(el("li", line) for line in lines), class_="remarks"),))
