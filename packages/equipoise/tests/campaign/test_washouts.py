"""A campaign continues with washouts if carry-over could explain the difference that it called."""

from __future__ import annotations

from pathlib import Path

import msgspec.structs
import pytest

from equipoise.analysis.result import analyse_campaign
from equipoise.analysis.sequences import sequences_of, sequences_of_document
from equipoise.campaign.washouts import may_add_washouts
from equipoise.design.coin import draw_block
from equipoise.design.limits import CampaignLimits
from equipoise.model.plan import Layout, Measure, Stopping
from equipoise.model.record import BEFORE_WASHOUTS, RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import encode
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.schema import validated

CARRIES = (0.0, 0.03)
"""The candidate slows whatever runs next by 3 %, and takes as long as the baseline."""
AT_MOST = Stopping(min_seconds=0.0, blocks=150)


def measured(folder: Path, **runner: object) -> tuple[Stage, RunRecord, ResultDocument]:
    stage = Stage(folder, **{"noise": 0.01, **runner})
    run_id = stage.start(plan_of(stopping=AT_MOST))
    record = stage.ledger.read_run(run_id)
    return stage, record, validated(analyse_campaign(record))


def test_carry_over_alone_ends_without_a_difference(tmp_path: Path) -> None:
    _, record, document = measured(tmp_path, slows_next=CARRIES)
    (comparison,) = document.comparisons
    check = comparison.carry_over_check
    assert check is not None
    assert check.added_washouts
    assert check.verdict == "faster"
    assert check.explainable_part == "all"
    low, high = check.carry_over_ci
    assert low is not None
    assert high is not None
    assert low < 1.0305 < high
    assert comparison.verdict not in ("faster", "slower", "mixed")
    assert comparison.blocks == document.run.blocks - check.blocks
    assert "carry_over" in [warning.code for warning in document.warnings]
    before = [row for row in document.trials if row.left_out_because == BEFORE_WASHOUTS]
    assert len(before) == 2 * check.blocks
    washed = [trial for trial in record.trials if trial.washout]
    assert len(washed) == 2 * comparison.blocks


def test_a_block_has_one_washout_condition_and_both_come_up(tmp_path: Path) -> None:
    _, record, _ = measured(tmp_path, slows_next=CARRIES)
    of_blocks: dict[int, set[int]] = {}
    for trial in record.trials:
        if trial.washout:
            of_blocks.setdefault(trial.block, set()).add(trial.condition)
    assert all(len(conditions) == 1 for conditions in of_blocks.values())
    assert set.union(*of_blocks.values()) == {0, 1}


def test_a_true_difference_stops_without_washouts_and_the_result_says_why(tmp_path: Path) -> None:
    _, record, document = measured(tmp_path, medians=(0.010, 0.011))
    (comparison,) = document.comparisons
    assert comparison.verdict == "slower"
    assert comparison.carry_over_check is not None
    assert comparison.carry_over_check.explainable_part == "nothing"
    assert not any(trial.washout for trial in record.trials)
    assert "carry_over" not in [warning.code for warning in document.warnings]


def test_a_true_difference_with_carry_over_is_found_by_the_washouts(tmp_path: Path) -> None:
    # In ordinary blocks the carry-over of 8 % hides the true 5 % and reverses its sign.
    _, _, document = measured(tmp_path, medians=(0.010, 0.0105), slows_next=(0.0, 0.2))
    (comparison,) = document.comparisons
    check = comparison.carry_over_check
    assert check is not None
    assert check.verdict == "faster"
    if check.added_washouts:
        assert comparison.verdict == "slower"
    else:
        assert check.explainable_part != "nothing"


@pytest.mark.parametrize("place", [0, 1])
def test_a_campaign_resumes_in_the_middle_of_its_washouts(tmp_path: Path, place: int) -> None:
    _, whole, _ = measured(tmp_path / "whole", slows_next=CARRIES)
    blocks = sorted({trial.block for trial in whole.trials if trial.washout})
    for cut in (blocks[0], blocks[3]):
        stage = Stage(tmp_path / f"cut in {cut}", noise=0.01, slows_next=CARRIES)
        run_id = stage.interrupt(plan_of(stopping=AT_MOST), block=cut, place=place)
        record = stage.ledger.read_run(stage.resume(run_id))
        later = [t for t in record.trials if t.phase == "measured" and t.block > cut]
        assert {t.block for t in later if t.washout} == {t.block for t in later}
        (comparison,) = analyse_campaign(record).comparisons
        check = comparison.carry_over_check
        assert check is not None
        assert check.blocks == blocks[0] - 1
        assert comparison.verdict not in ("faster", "slower", "mixed")


def test_the_ledger_alone_gives_the_same_result(tmp_path: Path) -> None:
    stage, record, document = measured(tmp_path, slows_next=CARRIES)
    again = analyse_campaign(stage.ledger.read_run(record.id))
    assert encode(document) == encode(again)
    (comparison,) = document.comparisons
    (points,) = sequences_of(record).values()
    assert (points[-1].low, points[-1].high) == comparison.ratio_ci
    (of_document,) = sequences_of_document(document).values()
    assert [(p.low, p.high) for p in of_document] == [(p.low, p.high) for p in points]


def test_a_budget_that_ends_before_the_washouts_gives_a_warning(tmp_path: Path) -> None:
    _, record, _ = measured(tmp_path / "whole", slows_next=CARRIES)
    first = min(trial.block for trial in record.trials if trial.washout)
    stage = Stage(tmp_path / "short", noise=0.01, slows_next=CARRIES)
    run_id = stage.start(plan_of(stopping=Stopping(min_seconds=0.0, blocks=first - 1)))
    document = validated(analyse_campaign(stage.ledger.read_run(run_id)))
    assert document.comparisons[0].verdict == "faster"
    assert document.run.stopped_because == "block limit"
    (warning,) = [warning for warning in document.warnings if warning.code == "carry_over"]
    assert warning.hint.startswith(
        f"run `equipoise resume {run_id}`, which continues with washouts"
    )
    stage.resume(run_id, CampaignLimits(blocks=150))
    resumed = analyse_campaign(stage.ledger.read_run(run_id))
    check = resumed.comparisons[0].carry_over_check
    assert check is not None
    assert check.added_washouts


def test_only_the_suspected_comparison_continues(tmp_path: Path) -> None:
    stage = Stage(tmp_path, noise=0.01, medians=(0.01, 0.01, 0.02), slows_next=(0.0, 0.06, 0.0))
    plan = plan_of("a", "b", "c", stopping=Stopping(leave_out_decided=True, min_seconds=0.0))
    run_id = stage.start(plan)
    record = stage.ledger.read_run(run_id)
    document = validated(analyse_campaign(record))
    by_name = {comparison.candidate: comparison for comparison in document.comparisons}
    assert by_name["c"].verdict == "slower"
    check = by_name["b"].carry_over_check
    assert check is not None
    assert check.added_washouts
    assert by_name["b"].verdict not in ("faster", "slower", "mixed")
    assert {trial.condition for trial in record.trials if trial.washout} == {0, 1}
    rows = [row for row in document.trials if row.condition == "c" and row.phase == "measured"]
    assert all(row.analysed for row in rows)
    assert len(rows) == by_name["c"].blocks
    assert encode(document) == encode(analyse_campaign(stage.ledger.read_run(run_id)))


def test_chosen_washouts_are_in_every_block_and_all_conditions_count(tmp_path: Path) -> None:
    stage = Stage(tmp_path, noise=0.01, slows_next=CARRIES)
    plan = plan_of(stopping=AT_MOST, measure=Measure("/", washout=True))
    document = validated(analyse_campaign(stage.ledger.read_run(stage.start(plan))))
    (comparison,) = document.comparisons
    assert comparison.verdict not in ("faster", "slower", "mixed")
    assert comparison.carry_over_check is None
    assert comparison.blocks == document.run.blocks


def test_the_washout_of_a_block_is_one_of_its_conditions_and_a_coin() -> None:
    plan = plan_of("a", "b", "c")
    drawn = [
        draw_block(plan, "measured", block, (0, 2), washouts=True).washout_condition
        for block in range(1, 1001)
    ]
    assert set(drawn) == {0, 2}
    # Three standard errors of a thousand throws of a fair coin.
    assert abs(sum(washout == 0 for washout in drawn) - 500) < 48
    assert draw_block(plan, "measured", 1).washout_condition is None


def test_campaigns_that_a_restart_would_break_only_warn() -> None:
    plan = plan_of()
    assert may_add_washouts(plan)
    assert not may_add_washouts(plan_of(measure=Measure("/", washout=True)))
    over_layouts = msgspec.structs.replace(plan, layouts=(Layout(0, 0, True),))
    assert not may_add_washouts(over_layouts)
