"""Whatever a comment, a docstring or a page cites exists: files, headings of pages, and rules."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("packages", "crates", "tests", "benchmarks", "scripts", "docs")
PAGES = ("CONTRIBUTING.md", "README.md", "SECURITY.md", "CHANGELOG.md")
BASES = (
    *("", "docs", *(f"packages/equipoise{below}" for below in ("", "/src", "/src/equipoise"))),
    *("packages/matching", "packages/matching/src/equipoise_matching"),
    "packages/studies/src/equipoise_studies",
)
"""Folders from which a path may start, besides those above the file that cites it."""
FILE = re.compile(
    r"(?<![\w/.{}*$<~-])((?:[\w-]+/)+[\w.-]+\.(?:md|py|rs|toml|sql|c)|[\w-]+\.md)\b(?:#([\w-]+))?"
)
RULE = re.compile(r"\brule (\d+)", re.IGNORECASE)
EXAMPLES = frozenset(
    (
        "page.md",
        "history.md",
        "page-2.md",
        "FILE.md",
        "gate.md",
        "equipoise-bisect.md",
        "a/b.rs",
        "a/b/mod.rs",
    )
)
"""Names of files that somebody makes: outputs of commands, and examples."""


def cited_in(text: str) -> tuple[list[tuple[str, str]], list[int]]:
    """The files with their headings, and the rules, that prose cites."""
    return FILE.findall(text), [int(number) for number in RULE.findall(text)]


def prose_of(file: Path) -> str:
    """The comments and docstrings of a source file; a page without its blocks of output."""
    text = file.read_text(encoding="utf-8")
    match file.suffix:
        case ".py" | ".pyi":
            # Reading tokens is slow, and few files cite anything.
            return "\n".join(_python_prose(text)) if any(cited_in(text)) else ""
        case ".rs":
            return "\n".join(re.findall(r"(?<!:)//[/!]?(.*)", text))
        case ".md":
            return re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join(re.findall(r"(?:^|\s)#\s(.*)", text))


def _python_prose(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(ast.Constant(str() as docstring)):
                yield docstring


@cache
def files_with_prose() -> tuple[Path, ...]:
    endings = {".py", ".pyi", ".rs", ".md", ".toml", ".sh", ".yml"}
    below = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*")]
    return (
        *(ROOT / page for page in PAGES),
        *sorted(file for file in below if file.suffix in endings and "target" not in file.parts),
    )


@cache
def headings(page: Path) -> frozenset[str]:
    """The names that headings of a page have in links."""
    titles = re.findall(r"^#+ (.*)", prose_of(page), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles)
    return frozenset(re.sub(r"[-\s]+", "-", title) for title in words)


def wrong_in(file: Path, text: str) -> Iterator[str]:
    """Yield what the prose of a file cites and is not there."""
    paths, rules = cited_in(text)
    above = [folder for folder in file.parents if folder.is_relative_to(ROOT)]
    bases = [*(ROOT / base for base in BASES), *above]
    for path, heading in paths:
        places = [base / path for base in bases if (base / path).is_file()]
        if path in EXAMPLES:
            continue
        if not places:
            yield f"{file.relative_to(ROOT)} cites the file {path}"
        elif heading and not any(heading in headings(place) for place in places):
            yield f"{file.relative_to(ROOT)} cites the heading {path}#{heading}"
    for number in rules:
        if number not in numbered_rules():
            yield f"{file.relative_to(ROOT)} cites rule {number}"


@cache
def numbered_rules() -> frozenset[int]:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The rules\n")[2]
    numbers = re.findall(r"^(\d+)\. \*\*", section.partition("\n## ")[0], re.MULTILINE)
    return frozenset(map(int, numbers))


def test_contributing_states_nine_rules() -> None:
    assert numbered_rules() == set(range(1, 10))


def test_every_cited_file_heading_and_rule_exists() -> None:
    wrong = [line for file in files_with_prose() for line in wrong_in(file, prose_of(file))]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("as in docs/nowhere.md", "the file docs/nowhere.md"),
        ("the method (nowhere.md §7)", "the file nowhere.md"),
        ("see stats/nowhere.py", "the file stats/nowhere.py"),
        (
            "docs/methods/interval.md#no-such-heading",
            "the heading docs/methods/interval.md#no-such-heading",
        ),
        ("nothing is left out (Rule 10)", "rule 10"),
    ],
)
def test_a_citation_of_nothing_is_found(text: str, named: str) -> None:
    (line,) = wrong_in(ROOT / "packages/equipoise/src/equipoise/api.py", text)
    assert line == f"packages/equipoise/src/equipoise/api.py cites {named}"


def test_a_citation_of_what_exists_is_accepted() -> None:
    text = "rule 7, docs/methods/interval.md#claim, stats/verdict.py, test_api.py"
    assert list(wrong_in(ROOT / "packages/equipoise/tests/test_api.py", text)) == []
