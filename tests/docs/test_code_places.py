"""The files and functions that pages of methods name as their code exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.test_citations import BASES

METHODS = sorted(page for page in (DOCS / "methods").glob("*.md") if page.name != "index.md")
FILE = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:py|rs)")
FOLDER = re.compile(r"(?:[\w-]+/)+[\w-]+")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def section_of(page: Path) -> str:
    """Return the section of a page that says where the code is."""
    text = page.read_text(encoding="utf-8")
    return text.partition("\n## Where the code is\n")[2].partition("\n## ")[0]


def places_in(section: str) -> list[str]:
    """Return the words in backticks: files, folders, and names of functions and types."""
    return re.findall(r"`([^`\s]+)`", section)


def paths_of(place: str, folder: Path | None = None) -> list[Path]:
    """Return the files or folders with this path, from a folder of sources or from ``folder``."""
    bases = [ROOT / base for base in BASES] + ([folder] if folder else [])
    return [base / place for base in bases if (base / place).exists()]


def missing_in(section: str) -> list[str]:
    """Return the files, folders and names of a section that are not in the sources it names.

    A file name without a folder is in the folder that the section named before.
    """
    files: list[Path] = []
    missing: list[str] = []
    folder: Path | None = None
    for place in places_in(section):
        if FILE.fullmatch(place):
            paths = paths_of(place, folder)
            files += paths
        elif FOLDER.fullmatch(place):
            paths = paths_of(place)
            folder = paths[0] if paths else None
        else:
            continue
        if not paths:
            missing.append(place)
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for place in places_in(section):
        if NAME.fullmatch(place) and not FILE.fullmatch(place):
            parts = place.split(".")
            defined = (rf"\b(?:def|class|fn|struct|enum) {part}\b" for part in parts)
            if not all(re.search(pattern, text) for pattern in defined):
                missing.append(place)
    return missing


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_a_page_of_methods_names_source_files(page: Path) -> None:
    assert any(FILE.fullmatch(place) for place in places_in(section_of(page)))


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_each_file_and_function_of_the_section_exists(page: Path) -> None:
    assert missing_in(section_of(page)) == []


def test_missing_files_folders_and_functions_are_found() -> None:
    section = "`stats/verdict.py`: `judge`, `no_such`; `stats/no_such.py`, `no/such/folder`"
    assert missing_in(section) == ["stats/no_such.py", "no/such/folder", "no_such"]
