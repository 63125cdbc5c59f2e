"""What pages name is there: files of the repository, modules to run, targets of make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, STUDY_PAGES

READMES = tuple(sorted((ROOT / "benchmarks").glob("*/README.md")))
ALL = (*PAGES, *STUDY_PAGES, *READMES)
FOLDERS = "action.yml|benchmarks|crates|docs|scripts|src|tests"
NAMED = re.compile(rf"(?<![\w./:-])(?:{FOLDERS})/[\w./-]*[\w/]")
MODULE = re.compile(r"python -m ((?:benchmarks|tests)(?:\.\w+)+)")
TARGET = re.compile(r"`make ([a-z-]+)")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def missing(text: str) -> list[str]:
    """What a text names and the repository does not have."""
    files = [one for one in NAMED.findall(text) if not (ROOT / one).exists()]
    modules = [
        one
        for one in MODULE.findall(text)
        if not any((ROOT / one.replace(".", "/")).with_suffix(end).exists() for end in ("", ".py"))
    ]
    targets = [one for one in TARGET.findall(text) if f"\n{one}:" not in MAKEFILE]
    return [*files, *modules, *(f"make {one}" for one in targets)]


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_in_the_repository(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_a_name_that_is_gone_is_found() -> None:
    text = "`docs/gone.md`, `python -m benchmarks.gone.run`, `make bench-gone`, docs/index.md."
    assert missing(text) == ["docs/gone.md", "benchmarks.gone.run", "make bench-gone"]
