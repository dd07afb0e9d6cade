"""The report in Chromium: what is there after its script ran, in light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import BINARY, Chromium
from tests.browser.reports import HOSTILE, REASONS, beside, hostile, large
from tests.support.paths import EXAMPLES
from tutti.cli.main import main
from tutti.present.report.node_boxes import BOXES
from tutti.present.report.page import page

pytestmark = pytest.mark.skipif(BINARY is None, reason="chromium is not installed (Debian: apt-get install chromium)")
EXAMPLE = EXAMPLES / "recommend"
SHOWN = "[...document.querySelectorAll('figure.node')].filter(each => each.offsetParent !== null).length"
WIDER = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "plan.html"
    arguments = ["recommend", "-f", str(EXAMPLE / "cluster.json"), "--pools", str(EXAMPLE / "pools.yaml")]
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--report", str(path)])
    assert not left.value.code
    return path


def text_of(browser: Chromium, selector: str) -> str:
    return str(browser.run(f"document.querySelector({selector!r}).innerText"))


def test_the_page_is_there_and_nothing_complains(browser: Chromium, report: Path) -> None:
    browser.open(report)
    assert text_of(browser, "h1") == "Buy 6 nodes for $1,305.24 a month"
    assert browser.run(SHOWN) == 7
    assert browser.run("document.querySelectorAll('#compare .bar-row').length") == 6
    assert browser.run("document.querySelectorAll('figure rect.t').length") >= 2 * 15 - 4
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("file://")] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
def test_it_can_be_seen(browser: Chromium, report: Path, tmp_path: Path, width: int, dark: bool) -> None:
    browser.open(report, width=width, dark=dark)
    assert browser.run(WIDER) is False
    image = browser.screenshot(tmp_path / "page.png", scale=0.5)
    assert image.width == width // 2
    ground = image.at(2, 2)
    assert max(ground) < 60 if dark else min(ground) > 200
    assert len(image.colours()) > 100
    browser.run("document.querySelector('#plan').scrollIntoView()")
    planning = browser.screenshot(tmp_path / "picture.png", scale=0.5)
    assert planning.pixels != image.pixels
    tiles = browser.run(
        "[...document.querySelectorAll('figure rect.t')].map(each => getComputedStyle(each).fill)"
        ".filter((fill, place, all) => all.indexOf(fill) === place)"
    )
    assert len(tiles) == 4  # three workloads, and what runs there already
    assert "rgb(0, 0, 0)" not in tiles


def test_the_filter_shows_what_it_finds(browser: Chromium, report: Path) -> None:
    browser.open(report)

    def looked_for(text: str) -> int:
        browser.run(
            f"(box => {{ box.value = {text!r}; box.dispatchEvent(new Event('input')) }})"
            "(document.getElementById('filter'))"
        )
        return int(browser.run(SHOWN))

    assert looked_for("search") == 1
    assert text_of(browser, "#shown") == "2 of 9 nodes"
    assert looked_for("TRAIN us-east-1b") == 2
    assert looked_for("ml/train-1") == 1
    assert looked_for("nobody") == 0
    assert looked_for("") == 7
    assert browser.complaints() == []


def test_a_workload_can_be_picked(browser: Chromium, report: Path) -> None:
    browser.open(report)
    lit = "document.querySelectorAll('rect.lit').length"
    press = "document.querySelector('.legend button').click()"
    browser.run(press)
    assert browser.run(lit) == browser.run("document.querySelectorAll('rect.c0').length") > 0
    browser.run(press)
    assert browser.run(lit) == 0


def test_without_scripts_everything_but_the_filter_is_there(browser: Chromium, report: Path) -> None:
    browser.open(report, scripts=False)
    assert browser.run(SHOWN) == 7
    assert browser.run("document.querySelector('.controls').offsetParent === null")
    assert browser.complaints() == []


def test_names_of_strangers_do_nothing(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page(hostile()), "utf-8")
    browser.open(path, width=390)
    assert HOSTILE in browser.run("document.querySelector('#notes').textContent")
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.images.length") == 0
    assert browser.run(WIDER) is False
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1200, 390], ids=["desk", "phone"])
def test_reasons_are_not_broken(browser: Chromium, tmp_path: Path, width: int) -> None:
    path = tmp_path / "down.html"
    path.write_text(page(beside(2)), "utf-8")
    browser.open(path, width=width)
    lines = browser.run(
        "[...document.querySelectorAll('#down td:nth-child(2) .word')].map(each => {"
        " const range = document.createRange(); range.selectNodeContents(each);"
        " return [each.textContent, range.getClientRects().length] })"
    )
    assert lines == [[reason, 1] for reason in REASONS]
    assert browser.run(WIDER) is False


def test_what_is_not_the_pages_own_is_forbidden(browser: Chromium, report: Path, tmp_path: Path) -> None:
    path = tmp_path / "injected.html"
    injected = "<script>document.title = 'pwned'</script><img src='http://127.0.0.1:9/x.png'></main>"
    path.write_text(report.read_text("utf-8").replace("</main>", injected), "utf-8")
    browser.open(path)
    assert browser.run("document.title") != "pwned"
    assert "Content Security Policy" in " ".join(browser.complaints())


def test_a_large_plan_stays_usable(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    path.write_text(page(large(1000, 10, kinds=1000)), "utf-8")
    browser.open(path)
    assert browser.run(SHOWN) == BOXES
    assert browser.run("performance.now()") < 10_000
    assert browser.complaints() == []
