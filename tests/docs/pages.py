"""The pages that users read, and the examples in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
READMES = (ROOT / "README.md", *ROOT.glob("packages/*/README.md"))
PAGES = tuple(sorted([*READMES, ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]))
STUDY_PAGES = tuple(
    sorted((ROOT / "packages/studies/src/equipoise_studies/builtin").glob("*/page.md"))
)
SHELL = frozenset({"", "sh"})
"""What a block of shell is marked with. What a program printed is marked ``text``."""
CONSOLE = "console"
"""What a user typed, behind prompts, with what was answered."""
PYTHON = "python"
PROGRAM = "equipoise"
PROMPT = "$ "
ALONE = re.compile(rf'(eval "\$\()?([A-Z_]+=\S+ )*{PROGRAM} ')
"""A line of one command of ours."""


@dataclass(frozen=True, slots=True)
class Example:
    """One block of shell or of Python."""

    page: str
    line: int
    """Where it begins, from 1."""
    text: str
    """What is typed."""
    is_python: bool = False


def examples(page: Path) -> Iterator[Example]:
    """Every block of shell and of Python of a page, in order."""
    name = str(page.relative_to(ROOT))
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block"):
            continue
        assert token.map is not None
        kind = token.info.strip()
        if kind in SHELL:
            yield Example(name, token.map[0] + 1, token.content)
        elif kind == CONSOLE:
            yield Example(name, token.map[0] + 1, typed(token.content))
        elif kind == PYTHON:
            yield Example(name, token.map[0] + 1, token.content, is_python=True)


def typed(session: str) -> str:
    """What stands behind prompts, to the end of a line that is continued."""
    found, goes_on = [], False
    for line in session.splitlines():
        if goes_on or line.startswith(PROMPT):
            found.append(line.removeprefix(PROMPT))
            goes_on = line.endswith("\\")
    return "".join(f"{line}\n" for line in found)


def lines(example: Example) -> list[str]:
    """Its lines; of shell those that are continued joined, without comments."""
    if example.is_python:
        return example.text.splitlines()
    joined = re.sub(r"\\\n\s*", " ", example.text)
    bare = (re.sub(r"(^|\s+)#( .*)?$", "", line).rstrip() for line in joined.splitlines())
    return [re.sub(r"(?<=\S) {2,}", " ", line) for line in bare if line]


def is_ours_alone(example: Example) -> bool:
    """Whether it holds commands of ours only: each is an example by itself."""
    return not example.is_python and all(ALONE.match(line) for line in lines(example))


def command_lines(example: Example) -> Iterator[list[str]]:
    """The words behind ``equipoise`` of each of its command lines."""
    for line in [] if example.is_python else lines(example):
        # Behind another command of the same line, or a variable.
        for part in re.split(r"(?:^|&&)\s*(?:[A-Z_]+=\S+ )*", line):
            if part.startswith(f"{PROGRAM} "):
                yield _words(part)[1:]


def _words(line: str) -> list[str]:
    """As a shell splits them, up to a redirection or a pipe."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>;")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = list(lexer)
    ends = (place for place, word in enumerate(words) if set(word) <= set("|>;"))
    return words[: next(ends, len(words))]
