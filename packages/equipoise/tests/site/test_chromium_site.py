"""A site in a real browser, from disk: quiet, accessible, searched by keyboard, and narrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.cli.test_show import record
from packages.equipoise.tests.documents import HOSTILE
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.report.accessibility import assert_accessible
from packages.equipoise.tests.report.chromium import DRAWN, MARKS, Browser

pytestmark = pytest.mark.live("chromium")


def assert_only_own_files(browser: Browser, site: Path) -> None:
    """No console message, no dialog, and no request but for files of the site."""
    assert browser.complaints() == []
    assert browser.dialogs() == []
    requests = browser.requests()
    assert requests
    assert [address for address in requests if not address.startswith(site.as_uri())] == []


def test_a_site_is_read_from_disk(browser: Browser, equipoise: Equipoise, tmp_path: Path) -> None:
    for names in ((HOSTILE, "b " + HOSTILE), ("a", "b")):
        record(tmp_path / "ledger.db", plan_of(*names), "6.1")
    options = ("--title", HOSTILE, "--full-pages", "1")
    assert equipoise("site", "ledger.db", "-o", "site", *options).status == 0
    site = tmp_path / "site"
    index = site / "index.html"
    browser.events.clear()
    for scheme, width, height in (("light", 1280, 800), ("dark", 390, 844)):
        browser.prefer(scheme)
        browser.open(index, width, height, ready=f"{DRAWN} === '{scheme}'")
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert_accessible(browser)
    # Search by keyboard: the words, then the only campaign that is left.
    browser.evaluate("document.getElementById('words').focus()")
    browser.call("Input.insertText", text="B IS slower than a:")
    browser.wait_until("document.querySelectorAll('.lines li:not([hidden])').length === 1")
    assert browser.evaluate("document.getElementById('matches').textContent") == "1 of 2 lines"
    while browser.evaluate("document.activeElement.closest('.lines') === null"):
        browser.press("Tab")
    browser.press("Enter")
    browser.wait_until(f"location.pathname.includes('/campaigns/') && {DRAWN}")
    assert all(count >= 2 for count in browser.evaluate(MARKS))
    assert browser.evaluate("document.querySelector('.brand a').href") == index.as_uri()
    assert_accessible(browser)
    assert_only_own_files(browser, site)
