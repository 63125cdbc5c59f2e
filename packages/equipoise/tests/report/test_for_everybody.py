"""The page by keyboard, by screen reader, on paper and without motion, in a real browser."""

from __future__ import annotations

import base64
import json

import pytest
from msgspec.structs import replace

from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput
from packages.equipoise.tests.documents import comparison_of, document_of, layered_document
from packages.equipoise.tests.report.accessibility import RULES, assert_accessible, load_axe
from packages.equipoise.tests.report.chromium import DRAWN, Browser
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.report.test_flame_graph import SVG
from packages.equipoise.tests.report.test_html import control_of
from packages.equipoise.tests.report.test_why import explained

pytestmark = pytest.mark.live("chromium")

STOPS = """[...document.querySelectorAll('a, button, summary, [tabindex]')]
  .filter(one => one.checkVisibility({visibilityProperty: true}))"""


def controlled() -> ResultDocument:
    """Several candidates, another metric and a control."""
    document = document_of("a", "b", "c", blocks=12)
    other = comparison_of("a", "b", 1.2, metric="minor_faults")
    return replace(
        document,
        control=control_of(document),
        comparisons=(*document.comparisons, other),
    )


def shown(browser: Browser, *documents: ResultDocument, theme: str = "light") -> None:
    """Open the page of these documents."""
    reported = [
        ReportInput(document, flame_graph=None if document.extra_time is None else SVG)
        for document in documents
    ]
    browser.prefer(theme)
    browser.show(page(reported), ready=f"{DRAWN} === '{theme}'")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "documents",
    [
        (controlled(),),
        (explained(),),
        (document_of(blocks=5), layered_document("a", "b")),
    ],
    ids=["control", "explained", "several"],
)
def test_no_rule_of_accessibility_is_broken(
    browser: Browser, documents: tuple[ResultDocument, ...], theme: str
) -> None:
    shown(browser, *documents, theme=theme)
    opened = "document.querySelectorAll('details:not(.numbers), [data-chart*=sequence]')"
    browser.evaluate(f"{opened}.forEach(one => {{ one.open = true; }})")
    assert_accessible(browser)


def test_axe_checks_its_rules(browser: Browser) -> None:
    broken_page = "<!doctype html><title>broken</title><img src='data:,'>"
    browser.show(broken_page, ready="document.title === 'broken'")
    load_axe(browser)
    broken = browser.evaluate(
        f"axe.run(document, {{runOnly: {json.dumps(RULES)}}})"
        ".then(found => found.violations.map(one => one.id))"
    )
    assert {"image-alt", "html-has-lang"} <= set(broken)


def test_every_control_is_reached_by_keyboard_and_seen_to_be(browser: Browser) -> None:
    shown(browser, controlled())
    stops = browser.evaluate(f"{STOPS}.length")
    assert stops > 20
    focused = f"{STOPS}.indexOf(document.activeElement)"
    seen = """(style => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2)
      (getComputedStyle(document.activeElement))"""
    reached = []
    for _ in range(stops):
        browser.press("Tab")
        reached.append(browser.evaluate(focused))
        assert browser.evaluate(seen), browser.evaluate("document.activeElement.outerHTML")
    assert reached == list(range(stops))


def test_the_keys_skip_to_the_result_change_the_theme_and_open_the_details(
    browser: Browser,
) -> None:
    shown(browser, document_of(blocks=5))
    browser.press("Tab")
    left = "document.activeElement.getBoundingClientRect().left"
    assert browser.evaluate("document.activeElement.textContent") == "Skip to the result"
    assert browser.evaluate(left) >= 0
    browser.press("Tab")
    browser.press(" ")
    browser.wait_until(f"{DRAWN} === 'dark'")
    browser.press("Enter")
    browser.wait_until(f"{DRAWN} === 'light'")
    browser.press("Tab")
    browser.press("Enter")
    browser.wait_until("document.querySelector('.verdict details').open")
    browser.evaluate("document.querySelector('.skip').focus()")
    browser.press("Enter")
    browser.wait_until("location.hash === '#run-1'")


def test_on_paper_everything_is_open_and_light_and_no_button_is_left(browser: Browser) -> None:
    shown(browser, controlled(), theme="dark")
    printed = base64.b64decode(browser.call("Page.printToPDF")["data"])
    assert printed.startswith(b"%PDF")
    closed = "[...document.querySelectorAll('main details:not(.numbers)')].filter(one => !one.open)"
    assert browser.evaluate(f"{closed}.length") == 0
    # As wide as a sheet of A4 within its margins.
    browser.resize(718, 1000)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.call("Emulation.setEmulatedMedia", media="print", features=[dark])
    try:
        left = "[...document.querySelectorAll('button, summary, .numbers, header, .skip')]"
        assert browser.evaluate(f"{left}.filter(one => one.checkVisibility()).length") == 0
        ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        assert browser.evaluate("document.documentElement.scrollWidth") <= 718
        wider = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > 718)"
        assert browser.evaluate(f"{wider}.length") == 0
        turned = "getComputedStyle(document.querySelector('.chart')).filter"
        assert browser.evaluate(turned).startswith("invert(1)")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


def test_nothing_moves_for_who_wants_no_motion(browser: Browser) -> None:
    shown(browser, document_of(blocks=5))
    browser.call(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-reduced-motion", "value": "reduce"}],
    )
    moving = """[...document.querySelectorAll('*')].filter(one => {
      const style = getComputedStyle(one);
      return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none';
    }).length"""
    assert browser.evaluate(moving) == 0
