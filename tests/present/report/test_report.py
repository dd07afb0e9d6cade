"""`tutti recommend --report`: what is on the page, what cannot get into it, and how it is written."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.browser.reports import HOSTILE, beside, hostile, large
from tests.support.command_line import Run, interrupted
from tests.support.documents import node, pod
from tests.support.paths import ROOT
from tutti.cli.recommend import write_report as write
from tutti.exceptions import InputError
from tutti.market.offerings import Catalogue
from tutti.present.recommendation_text import REMAINING_PODS
from tutti.present.report.markup import el, escaped
from tutti.present.report.node_boxes import BOXES
from tutti.present.report.page import Report, page
from tutti.present.report.treemap import Rect, tile_rectangles
from tutti.recommend.records.down_plan import DownPlan, Move, Removal, RemovalReason, ScaleDownStep, StayingNode
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request

Tutti = Callable[..., Run]
Write = Callable[..., str]
EXAMPLE = ROOT / "examples" / "recommend"
ZONE = "topology.kubernetes.io/zone"
VOID = {"meta", "input", "br"}


class Seen(HTMLParser):
    """The elements, attributes and texts of a page; every element must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def count(self, tag: str, kind: str = "") -> int:
        return sum(
            each == tag and (not kind or kind in (attributes.get("class") or "").split())
            for each, attributes in self.tags
        )

    @property
    def text(self) -> str:
        return " ".join(self.texts)


@pytest.fixture
def report(tutti: Tutti, tmp_path: Path) -> Callable[..., str]:
    """Run with --report, and give the page."""

    def made(*arguments: str) -> str:
        path = tmp_path / "plan.html"
        run = tutti("recommend", *arguments, "--report", str(path))
        assert run.code == 0, run.err
        assert f"note: the report is in {path}\n" in run.err
        return path.read_text("utf-8")

    return made


def example(report: Callable[..., str]) -> str:
    return report("-f", str(EXAMPLE / "cluster.json"), "--pools", str(EXAMPLE / "pools.yaml"))


# What is on the page --------------------------------------------------------------------------------------------------


def test_the_page_says_what_the_table_says(report: Callable[..., str]) -> None:
    seen = Seen(example(report))
    text = seen.text
    assert "Buy 6 nodes for $1,305.24 a month" in text
    proved = f"Proved: no purchase costs less {REMAINING_PODS}."
    assert f"15 of 16 pending pods get a node. {proved} Every new node is" in text
    assert "no purchase costs less than this" in text
    for part in (
        "Comparison with other autoscalers",
        "Where the pods go",
        "Cost by pool",
        "1 pod stays pending",
        "Pools",
    ):
        assert part in text
    assert "no waiting pod tolerates its taint spot:NoSchedule" in text
    assert "Cluster Autoscaler, least-waste" in text
    assert seen.count("svg", "bar") == 6 + 2
    assert seen.count("figure", "new") == 4
    assert seen.count("figure", "there") == 3
    assert "2 other nodes take none of these pods." in text


def test_every_pod_of_a_drawn_node_has_a_tile_with_its_name_and_requests(report: Callable[..., str]) -> None:
    text = example(report)
    titles = re.findall(r"<title>([^<]*)</title></rect>", text)
    assert "ml/train-1\n6 cpu, 10 Gi memory" in titles
    assert len({title for title in titles if title.startswith("shop/api-")}) >= 3


def test_the_same_input_gives_the_same_page(report: Callable[..., str]) -> None:
    assert example(report) == example(report)


def test_the_page_asks_for_nothing_and_allows_only_its_own_script(report: Callable[..., str]) -> None:
    text = example(report)
    seen = Seen(text)
    policy = next(a["content"] for tag, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for name in ("style", "script"):
        (inside,) = re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    attributes = {name for _, each in seen.tags for name in each}
    assert not attributes & {"src", "href", "style", "xlink:href", "action", "srcset"}
    assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in text
    assert "http://" not in text
    assert "https://" not in text


def test_sources_are_named(tutti: Tutti, tmp_path: Path) -> None:
    out = tmp_path / "plan.html"
    cluster = (EXAMPLE / "cluster.json").read_text("utf-8")
    tutti("recommend", "-f", "-", "--pools", str(EXAMPLE / "pools.yaml"), "--report", str(out), stdin=cluster)
    assert "standard input" in out.read_text("utf-8")


def test_nobody_waits(report: Callable[..., str], write: Write) -> None:
    seen = Seen(report("-f", write(node("a"), pod("old", on="a"))))
    assert "No pod waits for a node" in seen.text
    assert seen.count("figure") == seen.count("section") == 0


def test_an_empty_cluster(report: Callable[..., str], write: Write, tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools: [{name: p, zones: [z], template: {capacity: {cpu: 4, memory: 8Gi}}, price: 1}]", "utf-8")
    seen = Seen(report("-f", write(pod("first")), "--pools", str(pools)))
    assert "Buy 1 node for $730.00 a month" in seen.text
    assert seen.count("figure", "new") == 1
    seen = Seen(report("-f", write(), "--pools", str(pools)))
    assert "No pod waits for a node" in seen.text


def test_everything_fits_already(report: Callable[..., str], write: Write) -> None:
    seen = Seen(report("-f", write(node("a", labels={ZONE: "z-1"}), pod("tiny"))))
    assert "Nothing has to be bought" in seen.text
    assert (seen.count("figure", "new"), seen.count("figure", "there")) == (0, 1)


def test_without_prices(report: Callable[..., str], write: Write) -> None:
    seen = Seen(report("-f", write(node("a", labels={ZONE: "z-1"}), *(pod(f"p-{n}", cpu="4") for n in range(3)))))
    assert "Buy 2 nodes" in seen.text
    assert f"Proved: no purchase has fewer nodes {REMAINING_PODS}." in seen.text
    assert "some price is not known" in seen.text


# Strangers' names -----------------------------------------------------------------------------------------------------


def test_names_of_strangers_are_text() -> None:
    text = page(hostile())
    seen = Seen(text)
    assert seen.count("script") == 1
    assert seen.count("img") == 0
    assert HOSTILE in seen.text
    assert "x" * 253 in seen.text
    assert not re.search("[\x00\x1b\u202e\ud800]", text)
    text.encode("utf-8")


def test_escaping() -> None:
    assert el("td", "<b>", class_='"', title="'&") == '<td class="&quot;" title="&#39;&amp;">&lt;b&gt;</td>'
    assert el("p", el("b", "x"), None, hidden=False) == "<p><b>x</b></p>"
    assert escaped("a\x00b\ufffec") == "a\ufffdb\ufffdc"


# Large plans ----------------------------------------------------------------------------------------------------------


def test_nodes_that_are_alike_are_drawn_once() -> None:
    seen = Seen(page(large(1000, 10, kinds=3)))
    assert seen.count("figure") == 3
    assert sum(int(a["data-nodes"] or 0) for tag, a in seen.tags if tag == "figure") == 1000
    assert "× 334" in seen.text


def test_ten_thousand_pods_on_a_thousand_different_nodes_stay_a_small_page() -> None:
    text = page(large(1000, 10, kinds=1000))
    seen = Seen(text)
    assert seen.count("figure") == BOXES
    assert f"and {1000 - BOXES} nodes more here, filled in other ways" in seen.text
    assert len(text) < 3_000_000


def test_a_node_with_many_small_pods_has_tiles_that_one_can_point_at() -> None:
    text = page(large(1, 240, kinds=1))
    assert "8 pods of team/w0" in text
    assert text.count("<rect") < 200


@pytest.mark.parametrize("weights", [[], [1.0], [5.0, 3.0, 1.0, 1.0], [0.0, 2.0], [1.0] * 50, [1e9, 1.0]])
def test_tiles_have_their_share_and_lie_inside(weights: list[float]) -> None:
    room = Rect(10, 20, 86, 70)
    found = tile_rectangles(room, weights)
    assert len(found) == len(weights)
    for weight, tile in zip(weights, found, strict=True):
        assert tile.area == pytest.approx(room.area * weight / sum(weights), abs=1e-6)
        assert room.x - 1e-6 <= tile.x
        assert tile.x + tile.width <= room.x + room.width + 1e-6
        assert room.y - 1e-6 <= tile.y
        assert tile.y + tile.height <= room.y + room.height + 1e-6


# Giving back ----------------------------------------------------------------------------------------------------------


def test_what_can_be_given_back() -> None:
    removal = Removal(
        node="old-1", pool="p", zone="z", instance_type="m5.large", capacity_type="on-demand", price=10**8,
        why=RemovalReason.UNDERUSED, utilization=0.25, moves=2, wait=600,
    )  # fmt: skip
    steps = (
        ScaleDownStep(moves=(Move(pod="a/b", source="old-1", target="old-2"),), removes=("old-1",)),
        ScaleDownStep(adds=("n",)),
    )
    plan = DownPlan(
        removals=(removal,),
        staying_nodes=(StayingNode(node="old-3", pool="p", reason="BlockedByPod", message="a pod is alone"),),
        steps=steps, moves=1, before=3 * 10**8, after=2 * 10**8, saving=10**8, churn=5 * 10**7, payback=0.5,
    )  # fmt: skip
    answer = Recommendation(strategy="optimal", objective="cost", binder="tutti", down=plan, cost=0)
    text = Seen(page(Report(Request(objects=(), catalogue=Catalogue()), answer))).text
    assert "1 node can go, 1 pod moves: $73.00 a month less, $146.00 instead of $219.00" in text
    assert "the moves cost $0.05 once, paid back after 30m" in text
    assert "move 1 pod:  a/b → old-2 ; remove  old-1" in text
    assert "add  n" in text
    assert "a pod is alone" in text
    assert "Give back 1 node: $73.00 a month less" in text
    assert "Bill now" in text
    assert "Bill afterwards $146.00 1 node goes" in text
    empty = replace(answer, down=DownPlan())
    assert "No node can go." in Seen(page(Report(Request(objects=(), catalogue=Catalogue()), empty))).text


def test_a_bill_with_a_purchase_is_called_so() -> None:
    text = Seen(page(beside(2))).text
    assert "Bill with the purchase $1,022.00 $292.00 of it is bought" in text
    assert "$876.00 instead of $1,022.00 with the purchase." in text
    assert "Bill now" not in text


def test_there_are_no_bars_when_nobody_buys_anything() -> None:
    bought, nothing = Seen(page(beside(2))), Seen(page(beside(0)))
    assert (bought.count("svg", "bar"), nothing.count("svg", "bar")) == (2, 0)
    assert "No purchase has a node." in nothing.text
    assert "Cluster Autoscaler, least-waste" in nothing.text


def test_a_peer_that_was_not_done_agrees_with_nothing() -> None:
    text = page(beside(2))
    (row,) = re.findall(r"<tr><td>Karpenter</td>(.*?)</tr>", text)
    assert re.findall(r">([^<]+)</td>", row) == ["–"] * 7 + ["not done in 5.0 s"]


def test_remarks_call_columns_by_their_heads() -> None:
    text = page(beside(2))
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", text)
    for name in ("Holds", "Agrees"):
        assert name in heads
        assert f"<li>{name}: " in text
    assert "HOLDS" not in text
    assert "AGREES" not in text


# Writing --------------------------------------------------------------------------------------------------------------


def test_a_place_that_is_not_there_is_refused_before_anything_is_read(tutti: Tutti, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "plan.html"
    run = tutti("recommend", "-f", "missing.json", "--report", str(path))
    assert (run.code, run.out) == (2, "")
    assert run.err == f"error: {path}: there is no directory {path.parent}\n"
    run = tutti("recommend", "-f", "missing.json", "--report", str(tmp_path))
    assert run.err == f"error: {tmp_path}: is a directory: want the name of a file\n"


def test_standard_output_is_no_place(tutti: Tutti, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = tutti("recommend", "-f", "missing.json", "--report", "-")
    line = "error: --report wants the name of a file: the page is not written to standard output\n"
    assert (run.code, run.out, run.err) == (2, "", line)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null")
def test_a_device_is_not_replaced(tutti: Tutti) -> None:
    run = tutti("recommend", "-f", "missing.json", "--report", "/dev/null")
    assert run.err == "error: /dev/null: is not a file that can be replaced\n"
    assert not Path("/dev/null").is_file()


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.html"
    path.write_text("before", "utf-8")

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(write, "_mode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write.write_page(str(path), "after")
    assert [each.name for each in tmp_path.iterdir()] == ["plan.html"]
    assert path.read_text("utf-8") == "before"
    path.chmod(0o640)
    write.write_page(str(path), "after")
    assert (path.read_text("utf-8"), path.stat().st_mode & 0o777) == ("after", 0o640)


def test_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    link.symlink_to(real)
    write.write_page(str(link), "text")
    assert (real.read_text("utf-8"), link.is_symlink()) == ("text", True)


def test_a_name_that_no_file_can_have_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: file name too long"):
        write.write_page(str(tmp_path / ("x" * 300)), "text")


def test_an_interrupt_leaves_no_file(write: Write, tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools: [{name: p, zones: [z], template: {capacity: {cpu: 4, memory: 8Gi}}, price: 1}]", "utf-8")
    path = write(*(pod(f"job-{n}", cpu=f"{1 + n % 97 / 50:.2f}") for n in range(4_000)))
    out = tmp_path / "out"
    out.mkdir()
    arguments = ("recommend", "-f", path, "--pools", str(pools), "--time-limit", "60")
    run = interrupted(
        *arguments, "--report", str(out / "plan.html"), at="tutti.app.recommend.make_recommendation:make_recommendation"
    )
    assert run.code == 130
    assert b"Traceback" not in run.err
    assert list(out.iterdir()) == []
