"""The pages that users read, and the shell examples in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = tuple(sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]))
SHELL = frozenset({"", "sh", "console"})
"""What a block of shell is marked with; what a program printed is marked ``text``."""
RUN = "<!-- run -->"
"""Stands before a block that is cheap enough to be run by a test."""
PROGRAM = "equipoise"


@dataclass(frozen=True, slots=True)
class Example:
    """One block of shell."""

    page: str
    line: int
    """Where it begins, from 1."""
    text: str
    runs: bool


def examples(page: Path) -> Iterator[Example]:
    """Every block of shell of a page, in order."""
    before = ""
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type in ("fence", "code_block") and token.info.strip() in SHELL:
            assert token.map is not None
            yield Example(page.name, token.map[0] + 1, token.content, before.strip() == RUN)
        if token.level == 0:
            before = token.content if token.type == "html_block" else ""


def command_lines(example: Example) -> Iterator[list[str]]:
    """The words behind ``equipoise`` of each of its command lines."""
    joined = re.sub(r"\\\n\s*", " ", example.text)
    for line in joined.splitlines():
        # Behind a prompt, or after another command of the same line.
        for part in re.split(r"(?:^|&&)\s*(?:\$ )?", line):
            if part.startswith(f"{PROGRAM} "):
                yield _words(part)[1:]


def _words(line: str) -> list[str]:
    """As a shell splits them, up to a redirection, a pipe or a comment."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>;")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = list(lexer)
    ends = (place for place, word in enumerate(words) if set(word) <= set("|>;"))
    return words[: next(ends, len(words))]
