"""Details that a reader can see in the charts of a page, in a real browser."""

from __future__ import annotations

import pytest

from equipoise.report.builders.result import ReportInput
from equipoise.shared.theme import BACKGROUND, Theme
from packages.equipoise.tests.documents import document_of, points_of
from packages.equipoise.tests.report.chromium import DRAWN, Browser
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.report.kinds import compared, historied
from packages.equipoise.tests.shared.test_theme import contrast

pytestmark = pytest.mark.live("chromium")

COLOURS = """[...new Set([...document.querySelectorAll(
    '.chart svg .{} line:not([stroke-width="20"])')]
    .map(line => line.getAttribute('stroke')))]"""
"""Colours of these lines, without the strips that keep lines away from a name."""
LINES = (
    ("role-axis-domain", 3.0),
    ("role-axis-tick", 3.0),
    ("role-axis-grid", 1.4),
    ("role-mark.mark-rule", 3.0),
)
"""Class of lines, and the contrast to the ground that they need."""
RATIO_CHARTS = "[...document.querySelectorAll('.chart')].filter(one => /{}/.test(one.id))"
EQUAL = """.map(chart => [...chart.querySelectorAll('.role-axis-label text')]
    .filter(label => getComputedStyle(label).opacity > 0 && /equal/.test(label.textContent))
    .map(label => label.textContent))"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_lines_of_a_chart_can_be_seen_in_both_themes(browser: Browser, theme: Theme) -> None:
    browser.prefer(theme)
    try:
        browser.show(page([compared("")]), ready=f"{DRAWN} === '{theme}'")
        for lines, least in LINES:
            colours = browser.evaluate(COLOURS.format(lines))
            assert colours, lines
            assert min(contrast(colour, BACKGROUND[theme]) for colour in colours) >= least, lines
    finally:
        browser.prefer("light")


def of_ratio(ratio: float) -> ReportInput:
    """A comparison whose candidate takes so many times as long."""
    document = document_of(medians=(0.01, 0.01 * ratio))
    return ReportInput(document, {"sort --parallel=2 words": points_of(ratio)})


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    "reported",
    [compared(""), historied(""), *map(of_ratio, (0.004, 0.3, 2.1, 4.5, 40.0))],
    ids=["percent", "history", "0.004", "0.3", "2.1", "4.5", "40"],
)
def test_every_axis_of_ratios_says_where_both_are_equal(
    browser: Browser, reported: ReportInput, width: int
) -> None:
    browser.show(page([reported]), width)
    charts = RATIO_CHARTS.format("ratios|sequence|shift|curve")
    labels = browser.evaluate(charts + EQUAL)
    assert labels
    assert [len(label) for label in labels] == [1] * len(labels), labels
