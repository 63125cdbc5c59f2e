"""Pages in a real browser: the first screen, tables on a phone, labels, and paper."""

from __future__ import annotations

import base64
import io
import re

import pypdf
import pytest
from msgspec.structs import replace

from equipoise.report.builders.result import ReportInput
from packages.equipoise.tests.documents import document_of
from packages.equipoise.tests.report.chromium import Browser
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.report.kinds import Kind, kinds, reported, six

pytestmark = pytest.mark.live("chromium")

SCREENS = ((1280, 800), (390, 844))
KINDS = {kind.name: kind for kind in kinds()}
MAX_PAGES = 4
ORDER = """['.origin .question', '.origin .command', '.origin p:last-child', '.answer h1', 'figure']
    .map(one => document.querySelector(one).getBoundingClientRect())
    .map(box => [box.top, box.bottom, box.left, box.right])"""
WIDE = """[...document.querySelectorAll('.scroll')].map(one =>
    [one.scrollWidth > one.clientWidth + 1, one.querySelector('.more').checkVisibility()])"""
CROSSED = """[...document.querySelectorAll('.chart svg')].flatMap(svg => {
  const within = (a, b, from, to) => a[from] < b[to] && b[from] < a[to];
  const meets = (a, b) => within(a, b, 'left', 'right') && within(a, b, 'top', 'bottom');
  const words = [...svg.querySelectorAll('.mark-text.role-mark text')]
    .filter(one => one.textContent);
  const ground = words.filter(one => parseFloat(one.getAttribute('stroke-width')) >= 6);
  const lines = [...svg.querySelectorAll('.mark-rule line, .mark-line path, .mark-rule path')];
  return words.filter(one => !ground.includes(one)).map(word => {
    const box = word.getBoundingClientRect();
    const below = ground.filter(one => one.textContent === word.textContent
      && Math.abs(one.getBoundingClientRect().left - box.left) < 8
      && Math.abs(one.getBoundingClientRect().top - box.top) < 8);
    const above = one => below.length === 0
      || below[0].compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
    return lines.filter(one => meets(one.getBoundingClientRect(), box) && above(one)).length;
  });
})"""
"""For each label of each chart, the number of lines that are drawn over it."""

RUNNING_THROUGH = """[...document.querySelectorAll('.chart svg')].flatMap(svg => {
  const rules = [...svg.querySelectorAll('.mark-rule line')];
  const middle = one => (one.getBoundingClientRect().top + one.getBoundingClientRect().bottom) / 2;
  const strips = rules.filter(one => parseFloat(one.getAttribute('stroke-width')) >= 18);
  const names = [...svg.querySelectorAll('.mark-text.role-mark text')]
    .filter(one => /[a-z]/.test(one.textContent) && !one.getAttribute('stroke-width'));
  return names.map(name => {
    const box = name.getBoundingClientRect();
    const under = strips.filter(one => Math.abs(middle(one) - middle(name)) < 4);
    const through = rules.filter(one => !strips.includes(one)).filter(one => {
      const other = one.getBoundingClientRect();
      return other.left < box.right && box.left < other.right
        && other.top < box.bottom - 2 && box.top + 2 < other.bottom;
    });
    const bare = through.filter(line => !under.some(strip =>
      line.compareDocumentPosition(strip) & Node.DOCUMENT_POSITION_FOLLOWING));
    return [name.textContent, through.length, bare.length];
  });
})"""
"""For each name in a chart, the straight lines at its place, and those that no strip hides.

A triangle is not a name: it marks a trial that timed out."""


def shown(browser: Browser, kind: Kind, width: int, height: int) -> None:
    """Open the page of a kind."""
    browser.show(page([kind.reported("")]), width, height)


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("name", KINDS)
def test_the_first_screen_says_what_was_asked_when_where_and_how_then_the_answer_then_a_picture(
    browser: Browser, name: str, width: int, height: int
) -> None:
    shown(browser, KINDS[name], width, height)
    boxes = browser.evaluate(ORDER)
    tops = [top for top, *_ in boxes]
    assert tops == sorted(tops)
    for _, bottom, left, right in boxes[:-1]:
        assert bottom <= height
        assert 0 <= left <= right <= width
    question, command, moment = browser.evaluate(
        "[...document.querySelectorAll('.origin p')].map(one => one.textContent)"
    )
    assert question
    assert command.startswith("equipoise ")
    assert " UTC · " in moment
    # Nothing but the heading of the picture is between it and the answer.
    between = "document.querySelector('.answer').nextElementSibling.querySelector('figure')"
    assert browser.evaluate(f"Boolean({between})")


def test_three_conditions_without_a_difference_have_no_cards(browser: Browser) -> None:
    shown(browser, KINDS["alike"], *SCREENS[0])
    assert browser.evaluate("document.querySelector('h1').textContent") == (
        "No difference found; all within ±5 %"
    )
    cards = "[...document.querySelectorAll('.verdict')].filter(one => one.checkVisibility())"
    assert browser.evaluate(f"{cards}.length") == 0


@pytest.mark.parametrize("name", ["six", "why", "os", "sekhon2006"])
def test_a_table_that_is_wider_than_a_phone_says_that_it_scrolls(
    browser: Browser, name: str
) -> None:
    shown(browser, KINDS[name], *SCREENS[1])
    # A page of the narrow screen has wide tables, each with its word and no other.
    pairs = browser.evaluate(WIDE)
    assert any(wide for wide, _ in pairs)
    assert all(wide == told for wide, told in pairs)
    browser.evaluate(
        "document.querySelectorAll('.scroll').forEach(one => { one.scrollLeft = 9999; })"
    )
    hidden = "getComputedStyle(document.querySelector('.scroll.wider .more')).visibility"
    browser.wait_until(f"{hidden} === 'hidden'")
    assert browser.evaluate("document.documentElement.scrollWidth") <= SCREENS[1][0]


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("name", ["b", "a command that is longer than half a phone is wide"])
def test_no_line_is_drawn_over_a_label(
    browser: Browser, width: int, height: int, name: str
) -> None:
    names = ("a", name, f"{name} c")
    document = document_of(*names, blocks=8, timeouts=frozenset({3}))
    # Few enough marks for a picture of vectors.
    browser.show(page([ReportInput(document)]), width, height)
    crossed = browser.evaluate(CROSSED)
    assert len(crossed) >= 2 * len(names) - 1
    assert not any(crossed), crossed


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("name", ["strata", "six", "what varies"])
def test_lines_stop_before_the_row_of_a_name(
    browser: Browser, width: int, height: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As vectors, whose places can be read: so many marks are drawn as pixels.
    monkeypatch.setattr("equipoise.report.renderers.html.MAX_VECTOR_ROWS", 10**9)
    shown(browser, KINDS[name], width, height)
    places = browser.evaluate(RUNNING_THROUGH)
    assert any(through for _, through, _ in places)
    assert [place for place in places if place[2]] == []


def printed(browser: Browser, text: str) -> list[str]:
    """Return the text of each printed sheet of a page."""
    browser.show(text, *SCREENS[0])
    pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
    return [sheet.extract_text() for sheet in pypdf.PdfReader(io.BytesIO(pdf)).pages]


def test_six_candidates_are_at_most_four_pages_and_headings_stay_with_their_tables(
    browser: Browser,
) -> None:
    pages = printed(browser, page([six()]))
    assert len(pages) <= MAX_PAGES
    assert "zstd -1 or lz4 is the fastest of 6" in pages[0].replace("\n", " ")
    # The word that each heading must share a page with: the first of its table.
    for heading, beginning in (
        ("Ranking", "Place"),
        ("Comparisons", "FASTER"),
        ("Conditions", "Median time"),
        ("Shape", "1 mode"),
        ("Environment", "cpu model"),
    ):
        (where,) = [text for text in pages if f"\n{heading}\n" in f"\n{text}"]
        assert beginning in where.partition(heading)[2], heading
    assert re.search(r"The page has \d+ more ", " ".join(pages).replace("\n", " "))


def test_a_long_table_may_break_but_not_behind_its_heading(browser: Browser) -> None:
    for count in (16, 36, 56):
        document = document_of(*(f"c{place}" for place in range(count)), blocks=3)
        report = reported(replace(document, comparisons=()))
        for text in printed(browser, page([report])):
            lines = [line for line in text.splitlines() if line.strip()]
            assert lines[-1] not in ("Conditions", "Shape", "Figures", "Warnings", "Environment")
