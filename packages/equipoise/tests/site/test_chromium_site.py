"""A site in a real browser, from disk: quiet, accessible, searched by keyboard, and narrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.report.renderers.site import shared_files
from equipoise.site import index
from equipoise.site.manifest import Manifest
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.cli.test_show import record
from packages.equipoise.tests.documents import HOSTILE
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.report.accessibility import assert_accessible
from packages.equipoise.tests.report.chromium import DRAWN, MARKS, Browser
from packages.equipoise.tests.site.test_index import campaigns

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


def test_campaigns_on_lists_are_found_from_disk(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LINES_OF_LIST", 5)
    manifest = Manifest(feed_id="urn:uuid:1", pages=tuple(campaigns(23)))
    contents = {**shared_files(), **index.index_files(HOSTILE, manifest, {}).contents}
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    browser.events.clear()
    is_searchable = "document.getElementById('search')?.hidden === false"
    browser.open(tmp_path / "index.html", 390, 844, ready=f"{DRAWN} && {is_searchable}")
    browser.evaluate("document.getElementById('words').focus()")
    browser.call("Input.insertText", text="answer=2")
    # Of these, 22 to 20 are on the index, and 2 is on the last list.
    browser.wait_until("document.querySelectorAll('.lines li:not([hidden])').length === 4")
    assert browser.evaluate("document.getElementById('matches').textContent") == "4 of 23 lines"
    assert_accessible(browser)
    address = browser.evaluate("document.querySelector('#listed-lines a').href")
    assert address == (tmp_path / str(manifest.pages[2].page)).as_uri()
    browser.evaluate("document.getElementById('words').select()")
    browser.call("Input.insertText", text="nothing has these words")
    browser.wait_until("document.getElementById('listed-section').hidden")
    browser.open(tmp_path / "lists/campaigns-2.html", 390, 844, ready=DRAWN)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    assert_accessible(browser)
    assert_only_own_files(browser, tmp_path)
