"""The pages that a user reads stay short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

MAX_WORDS_FOR_USERS = 54_500
MAX_WORDS_OF_A_HOW_TO = 800
MAX_WORDS_OF_AN_EXPLANATION = 2_500
MAX_LINES_OF_README = 100
"""Two screens."""
FOR_USERS = ("tutorials", "how-to", "explanation", "reference", "methods")
GENERATED = frozenset({"benchmark-tools.md", "commands.md", "python.md"})
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
EXPLANATIONS = sorted((DOCS / "explanation").glob("*.md"))


def words_of(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


def test_the_pages_for_users_have_at_most_49_000_words() -> None:
    pages = [page for folder in FOR_USERS for page in (DOCS / folder).rglob("*.md")]
    written = [page for page in pages if page.name not in GENERATED]
    assert sum(map(words_of, [*written, DOCS / "index.md", ROOT / "README.md"])) <= (
        MAX_WORDS_FOR_USERS
    )


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_how_to_page_has_at_most_800_words(page: Path) -> None:
    assert words_of(page) <= MAX_WORDS_OF_A_HOW_TO


@pytest.mark.parametrize("page", EXPLANATIONS, ids=lambda page: page.stem)
def test_an_explanation_has_at_most_2_500_words(page: Path) -> None:
    assert words_of(page) <= MAX_WORDS_OF_AN_EXPLANATION


def test_the_readme_fits_on_two_screens() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES_OF_README
