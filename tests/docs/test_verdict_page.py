"""The worked example of the page on the verdict prints the figures that stand below it."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.docs.pages import DOCS

PAGE = (DOCS / "explanation/verdict.md").read_text(encoding="utf-8")


def blocks_of(kind: str) -> list[str]:
    """Return the text of the fenced blocks of one kind, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_worked_example_prints_the_figures_of_the_page() -> None:
    (program,) = blocks_of("python")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "".join(blocks_of("text"))


def test_the_table_of_blocks_is_that_of_the_program() -> None:
    (program,) = blocks_of("python")
    rows = re.findall(r"^\| (\d) \| (old|new) \| (\d+) \| (\d+) \| ([\d.]+) % \|$", PAGE, re.M)
    assert f"OLD = [{', '.join(row[2] for row in rows)}]" in program
    assert f"NEW = [{', '.join(row[3] for row in rows)}]" in program
    coin = ["1" if row[1] == "old" else "-1" for row in rows]
    assert f"COIN = [{', '.join(coin)}]" in program
    percents = [f"{100 * (int(new) / int(old) - 1):.1f}" for _, _, old, new, _ in rows]
    assert percents == [row[4] for row in rows]
