"""Docstrings have one form each: what a function raises is a sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECTION = re.compile(r"^ *Raises:?\n *-{3,}$", re.MULTILINE)
BEHIND_A_SECTION = re.compile(r"^ *(Parameters|Returns|Yields)\n *-{3,}\n(.*\n)*^ *Raise `", re.M)


def docstrings() -> Iterator[tuple[str, str]]:
    """Every docstring of the sources, with its place."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for file in sorted(ROOT.glob("packages/*/src/**/*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield f"{file.relative_to(ROOT)}: {getattr(node, 'name', 'the module')}", text


def test_what_a_function_raises_is_a_sentence_and_not_a_section() -> None:
    assert [place for place, text in docstrings() if SECTION.search(text)] == []


def test_the_sentence_stands_before_the_sections_that_would_swallow_it() -> None:
    assert [place for place, text in docstrings() if BEHIND_A_SECTION.search(text)] == []
