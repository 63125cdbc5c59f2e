"""The page of every kind of campaign in a real browser: the answer at first sight, all drawn."""

from __future__ import annotations

import pytest

from packages.equipoise.tests.documents import HOSTILE
from packages.equipoise.tests.report.accessibility import assert_accessible
from packages.equipoise.tests.report.chromium import DRAWN, MARKS, Browser, assert_quiet
from packages.equipoise.tests.report.forms import breakable, page
from packages.equipoise.tests.report.kinds import Kind, kinds

SCREENS = ((1280, 800), (390, 844))
LARGEST = 3_000_000
BOX = (
    "[...document.querySelectorAll('.answer > .title, .answer > .answer-line, .answer .tiles, {}')]"
)
AT_FIRST_SIGHT = BOX.format(".answer .verdict .title, .answer .interval, .answer .because")
EDGES = f"""{AT_FIRST_SIGHT}.map(one => one.getBoundingClientRect())
    .map(box => [box.left, box.top, box.right, box.bottom])"""
WORDS = f"{AT_FIRST_SIGHT}.map(one => one.textContent).join(' ')"
GROUND = "getComputedStyle(document.body).backgroundColor"

pytestmark = pytest.mark.live("chromium")


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_the_answer_of_every_kind_is_on_the_first_screen_and_its_page_is_whole(
    browser: Browser, kind: Kind
) -> None:
    browser.show(page([kind.reported("")]), *SCREENS[0])
    assert browser.opened.stat().st_size < LARGEST
    for width, height in SCREENS:
        browser.resize(width, height)
        browser.wait_until(f"window.innerWidth === {width}")
        boxes = browser.evaluate(EDGES)
        assert boxes
        for left, top, right, bottom in boxes:
            assert 0 <= left <= right <= width
            assert 0 <= top <= bottom <= height
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    text = breakable(browser.evaluate(WORDS))
    assert [part for part in kind.answer if part not in text] == []
    marks = browser.evaluate(MARKS)
    assert len(marks) >= kind.charts
    assert all(count >= 2 for count in marks), marks
    open_all = "document.querySelectorAll('details:not(.chart details) > summary')"
    browser.evaluate(f"{open_all}.forEach(one => one.click())")
    browser.wait_until(f"[...{open_all}].every(one => one.parentElement.open)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= SCREENS[-1][0]
    assert_accessible(browser)
    light = browser.evaluate(GROUND)
    browser.evaluate("document.getElementById('theme').click()")
    browser.wait_until(f"{DRAWN} === 'dark'")
    assert browser.evaluate(GROUND) != light
    assert_quiet(browser)


# A comparison's labels are in test_chromium.py.
@pytest.mark.parametrize("kind", kinds()[2:], ids=lambda kind: kind.name)
def test_a_hostile_text_in_any_kind_does_nothing(browser: Browser, kind: Kind) -> None:
    browser.show(page([kind.reported(HOSTILE)]), *SCREENS[1])
    assert HOSTILE[:30] in browser.evaluate("document.body.textContent")
    assert browser.evaluate("document.title").endswith("· Equipoise")
    # What is there without it: the page's own scripts, and the picture of a flame graph.
    assert browser.evaluate("document.scripts.length") == 3
    assert browser.evaluate("document.querySelectorAll('img:not(.flames)').length") == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= SCREENS[1][0]
    assert_quiet(browser)
