"""Habits of language that readers stumble over are gone from the sources and the pages."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPEAKERS = (
    "campaign|chart|column|comparison|document|engine|error|figure|host|message|metric|note|page|"
    "plan|report|result|row|run|sentence|server|study|table|trial|verdict|warning"
)


class Habit(NamedTuple):
    """One habit, and how to find it."""

    name: str
    instead: str
    pattern: str
    in_pages: bool = True
    """Whether the pages in docs and the README are searched, too, and not only the sources."""


HABITS = (
    Habit(
        "is no X",
        "is not a X",
        r"(?<!there )\b(?:is|are|was|were) no\b(?! (?:longer|more|less|fewer|matter)\b)",
    ),
    Habit("anew", "again", r"\banew\b"),
    Habit("for ever", "always, without end", r"\bfor ever\b"),
    Habit("of then", "a date", r"\bof then\b"),
    Habit("otherwise", "different", r"\b(?:is|are|was|be) otherwise\b|\botherwise than\b"),
    Habit("what", "the name of the thing", r'"""(?:(?:return|yield|show|write) )?what\b', False),
    Habit("speaks", "names, has, shows", rf"\b(?:{SPEAKERS})s? (?:tell|know|say)s?\b(?!\()"),
    Habit("for one in", "for cause in", r"\bfor one in\b", False),
    Habit(
        "MOST_ for a bound",
        "MAX_ or MIN_ and the unit",
        r"\b_?(?-i:MOST|LEAST|LARGEST|LONGEST|FEWEST|SMALLEST|SHORTEST)_(?=[a-z])",
        False,
    ),
)


@cache
def texts(in_pages: bool) -> tuple[str, ...]:
    """Return the sources, and the pages if they are wanted, each as one line."""
    sources = (ROOT / "packages").glob("*/src/**/*.py")
    shared = (ROOT / "packages/shared").rglob("*.py")
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"] if in_pages else []
    files = sorted({file.resolve() for file in chain(sources, shared, pages)})
    return tuple(re.sub(r"\s+(?:# )?", " ", file.read_text(encoding="utf-8")) for file in files)


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.name)
def test_a_habit_is_gone(habit: Habit) -> None:
    pattern = re.compile(habit.pattern, re.IGNORECASE)
    hits = [
        text[max(0, hit.start() - 40) : hit.end() + 40]
        for text in texts(habit.in_pages)
        for hit in pattern.finditer(text)
    ]
    assert hits == [], f"write {habit.instead!r}, not {habit.name!r}"
