"""`make screenshots` makes every picture of a page that the documentation shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished
from scripts import screenshots

DOCS = screenshots.ROOT / "docs"


def test_every_picture_of_a_page_has_a_command_that_makes_it() -> None:
    shown = {
        one
        for page in DOCS.rglob("*.md")
        for one in re.findall(r"images/([\w.-]+\.png)", page.read_text(encoding="utf-8"))
    }
    made = {screen.image for screen in screenshots.SCREENS}
    # The course of a search is no page: `genmatch --plot` writes it.
    assert shown == made | {"genmatch-course.png"}


@pytest.mark.parametrize("name", screenshots.MATCHING)
def test_the_command_of_a_page_is_the_one_that_stands_above_its_picture(name: str) -> None:
    (screen,) = (one for one in screenshots.SCREENS if one.name == name)
    (page,) = (one for one in DOCS.rglob("*.md") if f"images/{screen.image}" in one.read_text())
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    written = [line.strip() for line in text.splitlines() if f" equipoise {name} cps" in line]
    words = {frozenset(shlex.split(line)) for line in written}
    ours = {"equipoise", *screen.command, "--report", "trained.html"} - {"--quiet"}
    assert ours in words


def test_a_page_that_is_not_known_is_refused_with_those_that_are() -> None:
    done = finished([sys.executable, Path(screenshots.__file__), "nonsense"])
    assert done.returncode == 2
    assert done.stderr == (
        "no such page: nonsense\n  hint: compare, why, os, sekhon2006, observe, genmatch\n"
    )
