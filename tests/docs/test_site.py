"""The site builds without a complaint, has a place for every page and asks no other server."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from mkdocs.config import load_config

from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.report.chromium import chromium
from tests.docs.pages import DOCS, PAGES, ROOT, STUDY_PAGES

AWAITED: frozenset[str] = frozenset()
"""Pages that have their place before they are written."""


class Loaded(HTMLParser):
    """What a browser loads for a page by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an address that is loaded; links are followed only by a reader."""
        named = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(named.get("src") or "")
        elif tag == "link" and named.get("rel") != "canonical":
            self.addresses.append(named.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site. With ``--quiet`` MkDocs would count no warning as a failure."""
    folder = tmp_path_factory.mktemp("site")
    done = finished(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder], cwd=ROOT
    )
    warned = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert (done.returncode, done.stdout, warned) == (0, "", [])
    return folder


def places(nav: list[Any]) -> list[str]:
    """The pages of the navigation, in order."""
    found: list[str] = []
    for entry in nav:
        for content in entry.values():
            found += places(content) if isinstance(content, list) else [content]
    return found


def test_every_page_has_one_place_in_the_navigation() -> None:
    listed = places(load_config(str(ROOT / "mkdocs.yml")).nav or [])
    assert len(listed) == len(set(listed))
    written = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert written - set(listed) == set()
    assert set(listed) - written <= AWAITED


def test_links_and_their_places_exist_which_the_strict_build_holds(site: Path) -> None:
    assert (site / "index.html").is_file()
    assert 'href="methods/index.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_pages_of_the_repository_are_taken_in_where_a_page_links_to_them(site: Path) -> None:
    place = "repository/packages/studies/src/equipoise_studies/builtin/database/page.html"
    assert (site / place).is_file()
    assert f'href="../{place}"' in (site / "how-to/write-a-study.html").read_text(encoding="utf-8")
    assert "../benchmarks" not in (site / "evidence/validity.html").read_text(encoding="utf-8")


def test_no_page_loads_anything_from_another_server(site: Path) -> None:
    loaded = {
        address
        for page in site.rglob("*.html")
        for address in Loaded(page.read_text(encoding="utf-8")).addresses
    }
    assert loaded
    assert {one for one in loaded if re.match(r"(https?:)?//", one)} == set()


@pytest.mark.live("chromium")
def test_in_a_browser_a_page_switches_to_dark_fits_a_phone_and_complains_of_nothing(
    site: Path,
) -> None:
    with chromium() as browser:
        browser.prefer("dark")
        browser.open(
            site / "evidence/texts.html", width=390, ready="document.readyState == 'complete'"
        )
        theme = "document.documentElement.getAttribute('data-bs-theme')"
        assert browser.evaluate(theme) == "dark"
        browser.evaluate("document.querySelector('[data-bs-theme-value=light]').click()")
        assert browser.evaluate(theme) == "light"
        assert browser.evaluate("document.documentElement.scrollWidth") == 390
        # The search asks for its index, which a browser does only where the site is served.
        assert [one for one in browser.complaints() if "search/worker.js" not in one] == []


@pytest.mark.parametrize(
    "page", [*PAGES, *STUDY_PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_a_page_links_to_in_the_repository_is_there(page: Path) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    targets = {
        str(child.attrs.get("href") or child.attrs.get("src"))
        for token in tokens
        for child in token.children or []
        if child.type in ("link_open", "image")
    }
    inner = {one.partition("#")[0] for one in targets if "://" not in one}
    assert {one for one in inner if one and not (page.parent / one).exists()} == set()


@pytest.mark.parametrize("page", ["commands", "benchmark-tools"])
def test_a_generated_page_is_what_the_program_says(page: str) -> None:
    script = f"scripts/{page.replace('-', '_')}_page.py"
    done = finished([sys.executable, script], cwd=ROOT, check=True)
    written = (DOCS / f"reference/{page}.md").read_text(encoding="utf-8")
    assert written == done.stdout, "run make docs"
