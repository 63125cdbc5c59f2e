"""The pages of methods name files and functions that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.test_citations import BASES

METHODS = sorted(page for page in (DOCS / "methods").glob("*.md") if page.name != "index.md")
FILE = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:py|rs)")
FOLDER = re.compile(r"(?:[\w-]+/)+[\w-]+")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def section(page: Path) -> str:
    """Return the section of a page that says where the code is."""
    text = page.read_text(encoding="utf-8")
    return text.partition("\n## Where the code is\n")[2].partition("\n## ")[0]


def places(page: Path) -> list[str]:
    """Return the words in backticks, with one word for each file or function."""
    return re.findall(r"`([^`\s]+)`", section(page))


@cache
def find_source(path: str) -> tuple[Path, ...]:
    """Return the files or folders with this path, from the root or from a folder of sources."""
    return tuple(ROOT / base / path for base in BASES if (ROOT / base / path).exists())


def sources_of(page: Path) -> list[Path]:
    """Return all source files of a section; a folder holds the short names after it."""
    found: list[Path] = []
    folder: Path | None = None
    for place in places(page):
        if FILE.fullmatch(place):
            inside = (folder / place,) if folder and (folder / place).is_file() else ()
            found += inside or find_source(place)
        elif FOLDER.fullmatch(place):
            for folder in find_source(place):
                found += [file for file in folder.rglob("*") if file.suffix in {".py", ".rs"}]
    return found


def missing_in(page: Path) -> list[str]:
    """Return the files, folders and names of a section that are not in the source."""
    sources = sources_of(page)
    text = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    missing = []
    for place in places(page):
        if FILE.fullmatch(place):
            if not any(file.as_posix().endswith(f"/{place}") for file in sources):
                missing.append(place)
        elif FOLDER.fullmatch(place):
            if not find_source(place):
                missing.append(place)
        elif NAME.fullmatch(place):
            for name in place.split("."):
                if not re.search(rf"\b(?:def|class|fn|struct|enum) {name}\b", text):
                    missing.append(place)
    return missing


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_a_page_of_methods_says_where_the_code_is(page: Path) -> None:
    assert sources_of(page), f"{page.name} names no source file in backticks"


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_each_file_and_function_of_the_section_exists(page: Path) -> None:
    assert missing_in(page) == []
