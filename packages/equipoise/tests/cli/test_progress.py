"""The live bar of a study of 200 conditions, on a scripted clock."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from equipoise.campaign.progress import CampaignProgress, ComparisonStatus
from equipoise.cli.progress import ProgressLines
from equipoise.cli.progress_bars import ProgressBar
from equipoise.cli.study_forecast import MIN_FORECAST_S
from equipoise.kinds.bisect.terms import BisectPlan
from equipoise.model.plan import Plan
from equipoise.model.revisions import Revision
from packages.equipoise.tests.campaign.test_budget_sharing import OPEN_GROUPS, medians, study
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.plans import plan_of

ROWS = 30


def test_a_study_of_200_conditions_shows_where_its_open_comparisons_stand(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=medians(), noise=0.05)
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=120, height=ROWS, color_system=None)
    # A slower clock for the bar: to draw it at every trial would take most of the test.
    stage.start(study(budget_s=62.0), ProgressBar(console, clock=lambda: stage.clock() / 20.0))
    screen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).replace("\r", "")
    assert re.search(r"200 conditions, 5\.\d+ s a block: first verdicts after about 3\d", screen)
    frames = screen.split("candidate")[1:]
    assert all(len(frame.splitlines()) <= ROWS for frame in frames)
    assert "and 157 more, 157 of them open" in frames[0]
    # Once the others are decided, the open one is on top and goes on alone.
    alone, *later = [frame for frame in frames if "and 157 more, 0 of them open" in frame]
    rows = alone.splitlines()[1:]
    still_open = {f"1 of {group}" for group in range(OPEN_GROUPS)}
    assert {row[:6] for row in rows[:OPEN_GROUPS]} == still_open
    assert all("undecided" in row for row in rows[:OPEN_GROUPS])
    assert all("slower" in row for row in rows[OPEN_GROUPS:20])
    blocks = {row[:6]: int(row.split()[3]) for row in later[-1].splitlines()[1:20]}
    assert min(blocks.pop(name) for name in still_open) > max(blocks.values())


def searched() -> Plan:
    """A plan with a condition for each of five commits."""
    revision = Revision("main", "1" * 40)
    return replace(plan_of(*"abcde"), terms=BisectPlan(good=revision, bad=revision, commits=()))


def progress_of(block: int, left: int) -> CampaignProgress:
    status = ComparisonStatus(
        "e", "undecided", None, (None, None), search_status=f"{left} commits left"
    )
    return CampaignProgress(block, float(block), (status,))


def test_the_bar_of_a_search_says_how_many_commits_are_left_and_forecasts_no_first_block() -> None:
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=120, color_system=None)
    bar = ProgressBar(console, clock=itertools.count(1).__next__)
    bar.segment_started("run", searched(), 5, 0)
    bar.trial_ended(40.0, 2)
    bar.block_ended(progress_of(7, 3))
    bar.segment_ended()
    assert "block 7, at most 0:53 left; 3 commits left" in terminal.getvalue()
    assert "a block" not in terminal.getvalue()


def test_without_a_terminal_a_search_says_how_far_it_is_but_not_after_every_block(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = [0.0]
    lines = ProgressLines(None, clock=lambda: seconds[0])
    lines.segment_started("run", searched(), 5, 0)
    for block, left, now in ((1, 5, 0.0), (2, 4, 1.0), (3, 3, MIN_FORECAST_S), (9, 3, 900.0)):
        seconds[0] = now
        lines.block_ended(progress_of(block, left))
    said = capsys.readouterr().err.splitlines()
    assert [line.rpartition("equipoise: ")[2] for line in said] == [
        "block 1: 5 commits left",
        "block 3: 3 commits left",
    ]
