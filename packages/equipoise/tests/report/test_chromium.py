"""The page in a real browser, opened from disk: it draws, asks for nothing and obeys no label."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.figures.distributions import distributions
from equipoise.figures.save import save
from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput
from packages.equipoise.tests.documents import HOSTILE, document_of, points_of, sized_document
from packages.equipoise.tests.iterated import shaped_document
from packages.equipoise.tests.report.chromium import DRAWN, MARKS, Browser, assert_quiet, chromium
from packages.equipoise.tests.report.forms import page

pytestmark = pytest.mark.live("chromium")


def shown(
    browser: Browser, *documents: ResultDocument, width: int = 1280, height: int = 800
) -> None:
    """Open the page of these documents."""
    reported = [
        ReportInput(
            document, {c.candidate: points_of(c.ratio or 1.0) for c in document.comparisons}
        )
        for document in documents
    ]
    browser.show(page(reported), width, height)


@pytest.mark.parametrize(
    "document",
    [
        document_of(),
        document_of("a", "b", "c", timeouts=frozenset({3, 4})),
        document_of(blocks=1),
        document_of(blocks=2499),
        document_of(blocks=3000),
        document_of(medians=(0.0001, 0.02)),
        sized_document(),
        shaped_document(),
        replace(document_of(*(f"c{place}" for place in range(40)), blocks=2), comparisons=()),
    ],
    ids=[
        *("two", "timeouts", "one block", "every trial", "binned", "far apart", "sizes"),
        *("shapes", "many conditions"),
    ],
)
def test_every_chart_is_drawn_without_a_complaint_or_a_request(
    browser: Browser, document: ResultDocument
) -> None:
    shown(browser, document)
    marks = browser.evaluate(MARKS)
    assert len(marks) >= 2
    assert all(count >= 2 for count in marks), marks
    assert_quiet(browser)


def test_a_hostile_label_does_nothing(browser: Browser) -> None:
    shown(browser, document_of(HOSTILE, "b " + HOSTILE))
    assert browser.evaluate("document.title").endswith("· Equipoise")
    assert browser.evaluate("document.images.length") == 0
    assert browser.evaluate("document.scripts.length") == 3
    assert HOSTILE[:30] in browser.evaluate(
        "[...document.querySelectorAll('.chart text')].map(one => one.textContent).join()"
    )
    assert_quiet(browser)


def test_a_hostile_label_does_nothing_in_a_tooltip(browser: Browser) -> None:
    shown(browser, document_of(HOSTILE, "b " + HOSTILE))
    place = browser.evaluate(
        """(() => {
          const chart = document.querySelector('.chart[id*=time_course]');
          chart.scrollIntoView();
          const marks = [...chart.querySelectorAll('.mark-symbol path')];
          const box = marks[Math.floor(marks.length / 2)].getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        })()"""
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    browser.wait_until("document.querySelector('#vg-tooltip-element.visible')")
    tooltip = "document.querySelector('#vg-tooltip-element')"
    assert "<script>" in browser.evaluate(f"{tooltip}.textContent")
    assert browser.evaluate(f"{tooltip}.querySelectorAll('script, img').length") == 0
    assert_quiet(browser)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize(
    ("names", "below"), [(("a", "b"), ".interval"), (("a", "b", "c", "d", "e"), ".answer-line")]
)
def test_the_answer_is_on_the_first_screen_and_nothing_is_wider_than_it(
    browser: Browser, width: int, height: int, names: tuple[str, ...], below: str
) -> None:
    shown(browser, document_of(*names), width=width, height=height)
    for part in ("h1", below):
        box = browser.evaluate(
            f"(b => [b.left, b.top, b.right, b.bottom])"
            f"(document.querySelector('{part}').getBoundingClientRect())"
        )
        assert box[0] >= 0
        assert box[1] >= 0
        assert box[2] <= width
        assert box[3] <= height
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "height", "is_wide"), [(1600, 900, True), (390, 844, False)])
def test_two_reports_stand_beside_each_other_on_a_wide_screen(
    browser: Browser, width: int, height: int, is_wide: bool
) -> None:
    documents = document_of(), document_of("a", "b", blocks=20)
    shown(browser, *documents, width=width, height=height)
    first, second = browser.evaluate(
        "[...document.querySelectorAll('.answer')].map(one => one.getBoundingClientRect())"
        ".map(box => [box.left, box.top, box.right, box.bottom])"
    )
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    if is_wide:
        assert first[2] < second[0]
        assert max(first[3], second[3]) <= height
    else:
        assert first[3] < second[1]
    widths = browser.evaluate(
        "[...document.querySelectorAll('.chart')].map(one => "
        "[one.clientWidth, one.querySelector('svg').getBoundingClientRect().width])"
    )
    for place, picture in widths:
        assert picture == pytest.approx(place, abs=2)


def test_no_name_of_one_report_is_that_of_another_once_all_is_drawn(browser: Browser) -> None:
    documents = document_of(), document_of("a", "b", "c"), sized_document()
    shown(browser, *documents)
    for names in (
        "[...document.querySelectorAll('[id]')].map(one => one.id)",
        "[...document.querySelectorAll('section[aria-label]')].map(one => one.ariaLabel)",
    ):
        found = browser.evaluate(names)
        assert len(found) > 10
        assert sorted(found) == sorted(set(found))


def test_the_charts_are_as_wide_as_the_page(browser: Browser) -> None:
    shown(browser, document_of(), width=390, height=844)
    widths = browser.evaluate(
        "[...document.querySelectorAll('.chart')].map(one => "
        "[one.clientWidth, one.querySelector('svg').getBoundingClientRect().width])"
    )
    for place, picture in widths:
        assert picture == pytest.approx(place, abs=2)


def test_the_toggle_and_the_system_change_the_theme(browser: Browser) -> None:
    shown(browser, document_of())
    ground = "getComputedStyle(document.body).backgroundColor"
    chart = "document.querySelector('.chart svg').style.backgroundColor"
    light = browser.evaluate(f"[{ground}, {chart}]")
    browser.evaluate("document.getElementById('theme').click()")
    browser.wait_until(f"{DRAWN} === 'dark'")
    dark = browser.evaluate(f"[{ground}, {chart}]")
    assert light == ["rgb(255, 255, 255)", "rgb(255, 255, 255)"]
    assert dark == ["rgb(20, 24, 29)", "rgb(20, 24, 29)"]
    browser.evaluate("document.getElementById('theme').click()")
    browser.wait_until(f"{DRAWN} === 'light'")
    assert browser.evaluate(f"[{ground}, {chart}]") == light
    browser.prefer("dark")
    browser.open(browser.opened, ready=f"{DRAWN} === 'dark'")
    browser.prefer("light")
    browser.wait_until(f"{DRAWN} === 'light'")
    assert browser.complaints() == []


def test_a_script_that_is_not_ours_does_not_run(browser: Browser) -> None:
    reported = ReportInput(document_of())
    planted = "<script>document.title = 'ran'</script><img src='x.png' onerror='alert(1)'></main>"
    browser.show(page([reported]).replace("</main>", planted))
    assert browser.evaluate("document.title") != "ran"
    assert browser.dialogs() == []
    # The browser says that it held them back: the listening itself works.
    assert len(browser.complaints()) >= 2


def test_a_saved_chart_opens_as_a_page(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "figure.html"
    save(distributions(document_of(HOSTILE, "b")), path)
    browser.events.clear()
    browser.open(path, ready="document.querySelector('#chart svg')")
    assert_quiet(browser)


def test_the_browser_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "empty.html").write_text("<!doctype html><title>empty</title>")
    with chromium() as own:
        own.open(tmp_path / "empty.html", ready="document.title === 'empty'")
        home, group = own.home, own.group
        assert home.is_dir()
    assert not home.exists()
    assert not Path(f"/proc/{group}").exists()


def test_the_page_of_the_demos_comparison_opens_in_silence(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "malloc.html"
    tunables = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
    workload = "equipoise-workload malloc --size 35840 --count 200"
    subprocess.run(
        [sys.executable, "-m", "equipoise.cli", "compare", workload, workload]
        + ["-n", "glibc", "-n", "glibc_15k", "--env", f"2:GLIBC_TUNABLES={tunables}"]
        + ["--control", "--metrics", "wall_s,minor_faults", "--min-blocks", "12", "--quiet"]
        + ["--ledger", str(tmp_path / "ledger.db"), "--report", str(path)],
        check=True,
    )
    browser.events.clear()
    browser.open(path, 1280, 800, ready=DRAWN)
    assert_quiet(browser)
    assert "glibc_15k is slower than glibc" in browser.evaluate("document.body.innerText")
    marks = browser.evaluate(MARKS)
    assert len(marks) >= 4
    assert all(count > 0 for count in marks)
