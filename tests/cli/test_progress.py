"""The live bar of a study of 200 conditions, on a scripted clock."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from equipoise.cli.progress import Bar
from tests.campaign.test_budget_sharing import OPEN_GROUPS, medians, study
from tests.campaign.test_conduct import Stage

ROWS = 30


def test_a_study_of_200_conditions_shows_where_its_open_comparisons_stand(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=medians(), noise=0.05)
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=120, height=ROWS, color_system=None)
    # A slower clock for the bar: to draw it at every trial would take most of the test.
    stage.start(study(budget_s=62.0), Bar(console, clock=lambda: stage.clock() / 20.0))
    screen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).replace("\r", "")
    assert re.search(r"200 conditions, 5\.\d+ s a block: first verdicts after about 3\d", screen)
    frames = screen.split("candidate")[1:]
    assert all(len(frame.splitlines()) <= ROWS for frame in frames)
    assert "and 157 more, 157 of them open" in frames[0]
    # Once the others are decided, what is still open stands on top and goes on alone.
    alone, *later = [frame for frame in frames if "and 157 more, 0 of them open" in frame]
    rows = alone.splitlines()[1:]
    still_open = {f"1 of {group}" for group in range(OPEN_GROUPS)}
    assert {row[:6] for row in rows[:OPEN_GROUPS]} == still_open
    assert all("undecided" in row for row in rows[:OPEN_GROUPS])
    assert all("slower" in row for row in rows[OPEN_GROUPS:20])
    blocks = {row[:6]: int(row.split()[3]) for row in later[-1].splitlines()[1:20]}
    assert min(blocks.pop(name) for name in still_open) > max(blocks.values())
