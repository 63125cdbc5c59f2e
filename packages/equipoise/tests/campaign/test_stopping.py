"""The end of a campaign: the least time before a verdict, the budget, and a verdict nearby."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import block_seconds, complete_blocks
from equipoise.campaign.interim import latest_analysis_block
from equipoise.campaign.plans import study_plan
from equipoise.campaign.progress import blocks_to_near_verdicts
from equipoise.campaign.segment import StopReason
from equipoise.design.grid import grid_of
from equipoise.design.limits import CampaignLimits
from equipoise.measure.installation import host_site
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Judgement, Measure, Plan, Stopping
from equipoise.model.quantities import is_known_to_a_tenth
from equipoise.model.result import ResultDocument
from equipoise.stats.verdict import decisive_block, earliest_block
from equipoise.studies.preparation import quick_form
from equipoise.studies.reader.study import read_study
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.campaign.test_segment import ScriptedJudge, run_segment
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.scripted import ScriptedClock, ScriptedRunner

TWICE_AS_LONG = (0.001, 0.002)
MOMENT = Stopping(min_seconds=0.0)


def document_of(stage: Stage, plan: Plan) -> ResultDocument:
    return analyse_campaign(stage.ledger.read_run(stage.start(plan)))


def codes(document: ResultDocument) -> list[str]:
    return [warning.code for warning in document.warnings]


def test_short_trials_are_measured_for_a_second_before_a_verdict(tmp_path: Path) -> None:
    at_once = document_of(Stage(tmp_path / "a", medians=TWICE_AS_LONG), plan_of(stopping=MOMENT))
    later = document_of(Stage(tmp_path / "b", medians=TWICE_AS_LONG), plan_of(stopping=Stopping()))
    assert [document.comparisons[0].verdict for document in (at_once, later)] == [
        "slower",
        "slower",
    ]
    assert at_once.run.blocks < 20
    # A block takes 3 ms; beyond block 256 not every block is analysed.
    assert 320 < later.run.blocks < 350
    assert "short_time" not in codes(at_once) + codes(later)


def test_long_trials_get_no_block_more(tmp_path: Path) -> None:
    blocks = [
        document_of(Stage(tmp_path / str(i), medians=(1.0, 1.5)), plan_of(stopping=stopping))
        for i, stopping in enumerate((MOMENT, Stopping()))
    ]
    assert blocks[0].run.blocks == blocks[1].run.blocks < 10


def test_a_factor_is_measured_on_until_its_size_is_known_to_a_tenth(tmp_path: Path) -> None:
    at_once, later = (
        document_of(Stage(tmp_path / str(i), medians=(0.1, 0.5)), plan_of(stopping=stopping))
        for i, stopping in enumerate((MOMENT, Stopping()))
    )
    assert "at least" in at_once.comparisons[0].summary
    assert "at least" not in later.comparisons[0].summary
    assert is_known_to_a_tenth(later.comparisons[0].ratio_ci)
    assert at_once.run.blocks < later.run.blocks < 12


def test_the_size_of_a_factor_costs_no_more_than_a_few_seconds(tmp_path: Path) -> None:
    slow = Stage(tmp_path, medians=(1.0, 3.0), noise=0.3)
    document = document_of(slow, plan_of(stopping=Stopping()))
    assert not is_known_to_a_tenth(document.comparisons[0].ratio_ci)
    # A block takes 4 s.
    assert document.run.blocks <= earliest_block(0.05) + 2
    assert "at least" in document.comparisons[0].summary


def test_no_condition_leaves_a_campaign_before_its_least_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.002, 0.004, 0.002), noise=0.02)
    limits = Stopping(blocks=150, leave_out_decided=True)
    stage.start(plan_of("a", "slow", "same", stopping=limits))
    record = stage.ledger.read_run("last")
    sizes = [len(draw.order) for draw in record.draws if draw.phase == "measured"]
    assert set(sizes[:100]) == {3}
    assert sizes[-1] == 2


def test_a_pause_between_two_segments_is_not_measuring_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=TWICE_AS_LONG)
    run_id = stage.interrupt(plan_of(stopping=Stopping()), block=100, place=1)
    stage.clock.seconds += 86400.0
    record = stage.ledger.read_run(stage.resume(run_id))
    seconds = [*map(block_seconds, complete_blocks(record.draws, record.trials).values())]
    assert record.segments[-1].stopped_because == "verdict"
    assert 1.0 <= sum(seconds) < 1.02
    assert 320 < len(seconds) < 350


def test_the_block_limit_may_end_a_campaign_before_its_least_time_with_a_warning(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, medians=TWICE_AS_LONG)
    document = document_of(stage, plan_of(stopping=Stopping(blocks=20)))
    assert (document.run.blocks, document.run.stopped_because) == (20, "block limit")
    assert document.comparisons[0].verdict == "slower"
    assert "short_time" in codes(document)
    undecided = Stage(tmp_path / "undecided", medians=(0.001, 0.001))
    assert "short_time" not in codes(
        document_of(undecided, plan_of(stopping=Stopping(blocks=20), judgement=Judgement(0.05, 0)))
    )


def test_the_budget_alone_is_the_limit(tmp_path: Path) -> None:
    stage = Stage(tmp_path, noise=0.3)
    document = document_of(
        stage, plan_of(stopping=Stopping(budget_s=8.0), judgement=Judgement(min_effect=0.0))
    )
    assert document.run.stopped_because == "budget"
    assert document.run.blocks > 300


def stop_after(*forecasts: int, patient: bool = True) -> tuple[StopReason, int]:
    """Run blocks of 0.2 s with a budget of 1 s; return the stop reason and the number of blocks."""
    judge = ScriptedJudge(forecasts=forecasts)
    plan = plan_of(
        stopping=Stopping(budget_s=0.99, patient=patient), measure=Measure("/", warmup=0)
    )
    runner = ScriptedRunner(ScriptedClock(), medians=(0.1, 0.1), noise=0.0)
    return run_segment(plan, judge=judge, runner=runner), judge.seen


def test_a_patient_campaign_continues_only_to_a_near_verdict() -> None:
    assert stop_after(2, patient=False) == ("budget", 5)
    assert stop_after(2) == ("budget", 7)
    assert stop_after(1, 2, 40) == ("budget", 7)
    assert stop_after(3) == ("budget", 5)
    assert stop_after() == ("budget", 5)


def test_a_verdict_is_near_within_half_of_the_budget_again() -> None:
    assert blocks_to_near_verdicts([100, 40, 49, 50], block_s=0.1, budget_s=10.0) == 49
    assert blocks_to_near_verdicts([50], block_s=0.1, budget_s=10.0) is None
    assert blocks_to_near_verdicts([], block_s=0.1, budget_s=10.0) is None


@pytest.mark.parametrize("patient", [False, True])
def test_a_budget_that_ends_shortly_before_a_verdict_has_a_warning(
    tmp_path: Path, *, patient: bool
) -> None:
    stage = Stage(tmp_path, medians=(0.010, 0.0103), noise=0.03, random=random.Random(5))
    plan = plan_of(stopping=Stopping(budget_s=0.7, min_seconds=0.0, patient=patient))
    document = document_of(stage, plan)
    if patient:
        assert document.comparisons[0].verdict == "slower"
    else:
        assert document.comparisons[0].verdict == "undecided"
        near = next(warning for warning in document.warnings if warning.code == "verdict_near")
        assert f"equipoise resume {document.run.id}" in near.hint
        assert "patient=True" in near.hint


def test_a_long_campaign_is_analysed_whenever_its_blocks_have_grown_by_a_64th() -> None:
    assert [latest_analysis_block(block) for block in range(257)] == list(range(257))
    assert [latest_analysis_block(block) for block in (257, 259, 260, 263, 264)] == [
        *(256, 256, 260, 260, 264)
    ]
    analysed = {latest_analysis_block(block) for block in range(20_000)}
    assert len(analysed) < 256 + 320


STUDY = """
[study]
name = "many"
summary = "Which is faster?"
[workload]
command = ["true", "{size}", "{kind}"]
[factors.kind]
levels = ["a", "b", "c", "d"]
[factors.size]
role = "size"
levels = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
[compare]
factor = "kind"
[quick]
budget = 5
blocks = 8
"""


def quick_plan(folder: Path, limits: CampaignLimits) -> Plan:
    path = folder / "study.toml"
    path.write_text(STUDY)
    study = quick_form(read_study(path))
    plan, _ = study_plan(study, grid_of(study, host_site(), {}), limits)
    return plan


def test_a_quick_study_has_as_many_blocks_as_its_comparisons_need(tmp_path: Path) -> None:
    stopping = quick_plan(tmp_path, CampaignLimits()).stopping
    needed = decisive_block(0.05, 30)
    assert needed > earliest_block(0.05, 30)
    assert (stopping.blocks, stopping.blocks_before_budget) == (needed, needed)
    assert stopping.budget_s == 5.0


def test_a_chosen_limit_has_priority_over_the_needs_of_a_quick_study(tmp_path: Path) -> None:
    limited = quick_plan(tmp_path, CampaignLimits(blocks=3, budget=2.0)).stopping
    assert (limited.blocks, limited.blocks_before_budget, limited.budget_s) == (3, 0, 2.0)


def test_blocks_before_the_budget_run_with_any_duration() -> None:
    judge = ScriptedJudge()
    stopping = Stopping(budget_s=0.01, blocks_before_budget=6)
    assert run_segment(replace(plan_of(), stopping=stopping), judge=judge) == "budget"
    assert judge.seen == 6


def test_a_chosen_budget_has_priority_over_the_least_time_of_a_study(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(f"{STUDY}\n[measure]\nmin_seconds = 30\n")
    study = read_study(path)
    grid = grid_of(study, host_site(), {})

    def stopping_with(**limits: float) -> Stopping:
        return study_plan(study, grid, CampaignLimits(**limits))[0].stopping  # type: ignore[arg-type]

    assert (stopping_with().budget_s, stopping_with().min_seconds) == (60.0, 30.0)
    short = stopping_with(budget=2.0)
    assert (short.budget_s, short.min_seconds) == (2.0, 30.0)
    with pytest.raises(UnusableInput, match="30 s is above the budget of 2 s"):
        stopping_with(budget=2.0, min_seconds=30.0)


def short_time_hint(folder: Path, stopping: Stopping, seconds: float = 0.001) -> str:
    """Return the hint that says how a campaign of short blocks can measure for longer."""
    stage = Stage(folder, medians=(seconds, 2.0 * seconds))
    document = document_of(stage, plan_of(stopping=stopping, measure=Measure("/", warmup=0)))
    assert document.run.stopped_because == ("budget" if stopping.blocks is None else "block limit")
    assert document.comparisons[0].verdict == "slower"
    hint = next(warning.hint for warning in document.warnings if warning.code == "short_time")
    assert hint.startswith(f"run `equipoise resume {document.run.id} ")
    return hint.removeprefix(f"run `equipoise resume {document.run.id} ")


def test_the_hint_of_a_short_time_names_the_limit_that_ended_the_campaign(tmp_path: Path) -> None:
    hint = short_time_hint(tmp_path / "blocks", Stopping(blocks=20))
    option, blocks, *_ = hint.split()
    assert option == "--blocks"
    # A block takes 3 ms.
    assert 334 <= int(blocks.rstrip("`,")) <= 400
    hint = short_time_hint(tmp_path / "budget", Stopping(budget_s=0.5))
    option, seconds, *_ = hint.split()
    assert option == "--budget"
    assert 1 <= int(seconds.rstrip("`,")) <= 5


def test_a_campaign_that_follows_the_hint_of_a_short_time_has_measured_long_enough(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, medians=TWICE_AS_LONG)
    run_id = stage.start(plan_of(stopping=Stopping(blocks=20)))
    hint = next(
        warning.hint
        for warning in analyse_campaign(stage.ledger.read_run(run_id)).warnings
        if warning.code == "short_time"
    )
    blocks = int(hint.split("--blocks ")[1].split("`")[0])
    stage.resume(run_id, CampaignLimits(blocks=blocks))
    document = analyse_campaign(stage.ledger.read_run(run_id))
    assert document.run.stopped_because == "verdict"
    assert "short_time" not in codes(document)
