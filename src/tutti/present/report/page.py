"""The whole HTML page.

Contract: pure; the same records give the same bytes. Style and script are part of the page. The Content-Security-Policy
allows these two by their hashes and nothing else: no request, frame, form or other script, even if a text were not
escaped.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from tutti import __version__
from tutti.engine.session.plan import NotConsidered
from tutti.present.report import charts
from tutti.present.report import report_tables as tables
from tutti.present.report.drawing_data import drawing_data_of
from tutti.present.report.headline import headline, title_of
from tutti.present.report.markup import Child, Markup, el, joined, trusted
from tutti.present.report.node_boxes import plan_section
from tutti.present.report.scale_down_section import scale_down_section
from tutti.present.tables import counted
from tutti.recommend.compare import ComparedPurchase
from tutti.recommend.down.compare_cluster_autoscaler import PeerScaleDown
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request


class Report(NamedTuple):
    """The input of a page."""

    request: Request
    answer: Recommendation
    compared: Sequence[ComparedPurchase] = ()
    """Purchases, Tutti's first; empty without a comparison."""
    others: Sequence[NotConsidered] = ()
    """Pods that were not considered."""
    sources: Sequence[str] = ()
    """Names of the input files."""
    removals: PeerScaleDown | None = None
    """Cluster Autoscaler's scale-down; None without a comparison."""


def page(report: Report) -> str:
    """Return the HTML text."""
    style, script = _packaged_file("page.css"), _packaged_file("page.js")
    allowed = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="generator", content=f"tutti {__version__}"),
        el("title", f"{title_of(report.answer)} · Tutti"),
        el("style", trusted(style)),
    )
    foot = el("footer", f"Made by tutti {__version__}. Nothing was bought, and no cluster was changed.")
    main = el("main", headline(report.answer, report.compared, report.sources), *_sections(report), foot)
    return f"<!doctype html>\n{el('html', head, el('body', main, el('script', trusted(script))), lang='en')}\n"


def _sections(report: Report) -> list[Markup]:
    answer = report.answer
    sections: list[Markup] = []
    if report.compared:
        sections.append(
            _section("compare", "Comparison with other autoscalers", charts.comparison_section(report.compared, answer))
        )
    if answer.pods:
        sections.append(_section("plan", "Where the pods go", plan_section(drawing_data_of(report.request, answer))))
    if answer.scale_up:
        sections.append(_section("cost", "Cost by pool", charts.cost_section(answer)))
    if answer.down is not None:
        sections.append(_section("down", "What can be given back", scale_down_section(answer.down, report.removals)))
    if answer.left or report.others:
        stay = "stays pending" if len(answer.left) == 1 else "stay pending"
        title = f"{counted(len(answer.left), 'pod')} {stay}" if answer.left else "Not considered"
        sections.append(_section("pending", title, tables.pending_table(answer.left, report.others)))
    if any(each.reason for each in answer.pools):
        sections.append(_section("pools", "Pools", tables.pools_table(answer.pools)))
    if answer.alternatives:
        sections.append(_section("instead", "Instead of buying", tables.evictions_table(answer.alternatives)))
    if answer.notes:
        sections.append(_section("notes", "Notes", tables.notes_list(answer.notes)))
    return sections


def _section(name: str, title: str, *content: Child) -> Markup:
    return el("section", el("h2", title), joined(content), id=name)


def _packaged_file(name: str) -> str:
    """Return the text of a file in this package."""
    return files("tutti.present.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash that identifies a style or script in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
