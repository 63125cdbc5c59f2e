"""Whole campaigns of interventions: begun, failed in part, stopped, resumed, read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec.structs
import pytest

from equipoise.design.limits import CampaignLimits
from equipoise.kinds.explain import outcome
from equipoise.kinds.explain.terms import OmittedIntervention, experiment_of
from equipoise.measure.trials import TrialReport
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import Accounting, Draw, RunRecord
from equipoise.why.result import result_of
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.kinds.explain.simulated import Truth, plan_and_seconds
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.scripted import ScriptedRunner

NO_LIMIT = Stopping(blocks=200, budget_s=1e9)


def record_of(
    folder: Path,
    truths: Sequence[Truth],
    change: Callable[[Plan], Plan] = lambda plan: plan,
    *,
    gap: float = 2.4,
    **runner: object,
) -> RunRecord:
    """The record of a campaign on a scripted clock, whose plan was changed."""
    plan, seconds = plan_and_seconds(gap, truths, stopping=NO_LIMIT, seed=1)
    stage = Stage(folder, medians=seconds, **runner)
    return stage.ledger.read_run(stage.start(change(plan)))


def with_terms(plan: Plan, **fields: object) -> Plan:
    """The plan with these fields of what it tries."""
    explains = msgspec.structs.replace(experiment_of(plan), **fields)
    return msgspec.structs.replace(plan, terms=explains)


def with_attempts(plan: Plan, *changes: dict[str, Any]) -> Plan:
    """The plan with its attempts changed, the first by the first."""
    attempts = zip(experiment_of(plan).attempts, changes, strict=True)
    changed = tuple(msgspec.structs.replace(attempt, **fields) for attempt, fields in attempts)
    return with_terms(plan, attempts=changed)


def test_a_cause_is_confirmed_another_refuted_in_words_and_numbers(tmp_path: Path) -> None:
    record = record_of(tmp_path, (Truth(0.97), Truth(0.0)))
    confirmed, refuted = outcome.tested_causes(record)
    assert (confirmed.status, refuted.status) == ("confirmed", "refuted")
    assert confirmed.share_of_gap == pytest.approx(0.97, abs=0.05)
    low, high = confirmed.share_ci
    assert low is not None
    assert high is not None
    assert 0.5 < low < 0.97 < high
    assert refuted.share_of_gap == pytest.approx(0.0, abs=0.1)
    assert confirmed.summary.startswith("cause 0 suggests itself, as observed. Intervention 0")
    assert confirmed.summary.endswith("] of the gap.")
    assert confirmed.tested[0].significance_level == 0.025
    assert confirmed.tested[0].from_candidate == pytest.approx(1.0, abs=0.1)
    assert confirmed.evidence == {"size_bytes": 35_600}
    assert record.segments[-1].stopped_because == "verdict"


def test_a_cause_is_confirmed_by_any_and_refuted_only_by_all_of_its_interventions(
    tmp_path: Path,
) -> None:
    causes = (("cause 0", "cause 1"), ("cause 0",), ("cause 2",))
    changes = [{"causes": cause} for cause in causes]
    truths = (Truth(1.0), Truth(0.0), Truth(0.0))
    record = record_of(tmp_path, truths, lambda plan: with_attempts(plan, *changes))
    result = outcome.tested_causes(record)
    assert [cause.status for cause in result] == ["confirmed", "confirmed", "refuted"]
    assert [len(cause.tested) for cause in result] == [2, 1, 1]
    assert result[0].share_of_gap == pytest.approx(1.0, abs=0.1)


def test_an_intervention_that_leaves_a_cause_unchanged_does_not_refute_it(tmp_path: Path) -> None:
    truths = (Truth(0.0), Truth(0.0))
    weak = {"cannot_refute": True}
    record = record_of(tmp_path, truths, lambda plan: with_attempts(plan, weak, {}))
    causes = outcome.tested_causes(record)
    assert [cause.tested[0].outcome for cause in causes] == ["refuted", "refuted"]
    assert [cause.status for cause in causes] == ["open", "refuted"]


def test_the_user_s_own_is_an_entry_of_its_own(tmp_path: Path) -> None:
    truths = (Truth(1.0), Truth(0.0))
    record = record_of(tmp_path, truths, lambda plan: with_attempts(plan, {}, {"causes": ()}))
    causes = outcome.tested_causes(record)
    assert [cause.cause for cause in causes] == ["cause 0", "cause 1", outcome.TRIED_BY_USER]
    assert causes[2].kind == "configuration"
    assert causes[2].status == "refuted"
    assert causes[1].status == "open"
    assert causes[1].share_of_gap == 0.9
    assert "as observed and not tested" in causes[1].summary
    assert causes[1].summary.endswith("No intervention can test this cause here.")


def test_an_intervention_that_was_not_tried_has_its_reason(tmp_path: Path) -> None:
    left_out = OmittedIntervention(
        "jemalloc", "jemalloc", ("cause 0",), "libjemalloc2 is not installed"
    )
    record = record_of(tmp_path, (Truth(0.35),), lambda plan: with_terms(plan, omitted=(left_out,)))
    (cause,) = outcome.tested_causes(record)
    assert cause.status == "open"
    assert cause.share_of_gap == 0.9
    assert [outcome.outcome for outcome in cause.tested] == ["open", "open"]
    assert cause.tested[1].unknown_because == "not tried: libjemalloc2 is not installed"
    assert cause.summary.endswith("; jemalloc: not tried: libjemalloc2 is not installed.")


def test_a_cost_of_both_conditions_is_reported_as_a_ratio_and_in_seconds(tmp_path: Path) -> None:
    (cause,) = outcome.tested_causes(record_of(tmp_path, (Truth(0.0, machinery_s=0.1),)))
    assert cause.status == "open"
    assert "of the gap as a ratio, but" in cause.summary
    assert cause.summary.endswith("of it in seconds.")


def test_without_a_gap_there_is_no_share(tmp_path: Path) -> None:
    (cause,) = outcome.tested_causes(record_of(tmp_path, (Truth(0.5),), gap=1.0, noise=0.002))
    (test,) = cause.tested
    assert (cause.status, test.share, test.share_ci) == ("open", None, (None, None))
    assert test.unknown_because is not None
    assert test.unknown_because.startswith(
        "there is no gap to close in this campaign: B and A take the same time, within 1 %"
    )


@pytest.mark.parametrize("phase", ["warmup", "measured"])
def test_an_intervention_that_breaks_a_condition_ends_and_the_others_go_on(
    tmp_path: Path, phase: str
) -> None:
    plan, seconds = plan_and_seconds(2.4, (Truth(1.0), Truth(1.0)), stopping=NO_LIMIT, seed=1)
    stage = Stage(tmp_path, medians=seconds)

    def fails_whenever_it_runs(draw: Draw, place: int) -> None:
        stage.runner.fails_at = None
        if draw.order[place] == 3 and draw.phase == phase:
            stage.runner.fails_at = (draw.phase, draw.block, 3)

    stage.runner.before_trial = fails_whenever_it_runs
    record = stage.ledger.read_run(stage.start(plan))
    broken, other = outcome.tested_causes(record)
    assert (broken.status, other.status) == ("open", "confirmed")
    (test,) = broken.tested
    assert test.share is None
    assert test.unknown_because == (
        "a condition with this change failed: exit status 1; stderr: no such frobnicator"
    )
    failed = [trial for trial in record.trials if trial.failure is not None]
    assert len(failed) == 1
    after = [draw for draw in record.draws if draw.block > failed[0].block]
    assert after
    assert all(3 not in draw.order for draw in after)


def test_a_condition_that_cannot_even_start_with_an_intervention_costs_the_others_nothing(
    tmp_path: Path,
) -> None:
    """Its trial has no time; the block is complete and counts for the gap."""

    class Unstartable(ScriptedRunner):
        def _run(self, draw: Draw, place: int) -> TrialReport:
            ran = super()._run(draw, place)
            if (draw.phase, draw.order[place]) != ("measured", 2):
                return ran
            trial = msgspec.structs.replace(
                ran.trial, accounting=Accounting(), exit=None, failure="could not be started"
            )
            return msgspec.structs.replace(ran, trial=trial)

    plan, seconds = plan_and_seconds(2.4, (Truth(1.0), Truth(1.0)), stopping=NO_LIMIT, seed=1)
    stage = Stage(tmp_path)
    stage.runner = Unstartable(stage.clock, medians=seconds)
    record = stage.ledger.read_run(stage.start(plan))
    document = validated(result_of(record))
    assert [cause.status for cause in document.why] == ["open", "confirmed"]
    assert document.why[0].tested[0].unknown_because is not None
    measured = [draw for draw in record.draws if draw.phase == "measured"]
    assert document.comparisons[0].blocks == len(measured)


def test_a_failure_of_the_gap_itself_ends_the_campaign(tmp_path: Path) -> None:
    plan, seconds = plan_and_seconds(2.4, (Truth(1.0),), stopping=NO_LIMIT, seed=1)
    stage = Stage(tmp_path, medians=seconds, fails_at=("measured", 3, 1))
    with pytest.raises(ConditionFailed, match="B failed: exit status 1"):
        stage.start(plan)


def test_with_every_intervention_broken_the_gap_is_still_judged(tmp_path: Path) -> None:
    record = record_of(tmp_path, (Truth(1.0),), fails_at=("warmup", 1, 2))
    assert record.segments[-1].stopped_because == "verdict"
    assert {len(draw.order) for draw in record.draws if draw.phase == "measured"} == {2}
    assert outcome.tested_causes(record)[0].status == "open"


def test_an_interrupted_campaign_continues_as_it_would_have(tmp_path: Path) -> None:
    truths = (Truth(0.9, weight=3.0), Truth(0.35), Truth(0.0))
    plan, seconds = plan_and_seconds(
        2.4, truths, stopping=Stopping(blocks=30, budget_s=1e9), seed=6
    )
    whole, cut = (Stage(tmp_path / name, medians=seconds) for name in ("whole", "cut"))
    undisturbed = whole.ledger.read_run(whole.start(plan))
    record = cut.ledger.read_run(cut.resume(cut.interrupt(plan, block=9, place=0)))
    measured = [draw for draw in record.draws if draw.phase == "measured"]
    # The incomplete block is left out; its number, and thus its draw, is not used again.
    expected = [draw for draw in undisturbed.draws if draw.phase == "measured"]
    assert measured[:9] == expected[:9]
    assert [draw.phase for draw in record.draws].count("warmup") == 2
    assert outcome.tested_causes(record)[0].status == "confirmed"


def test_an_attempt_that_failed_stays_ended_when_the_campaign_goes_on(tmp_path: Path) -> None:
    truths = (Truth(1.0), Truth(0.35))
    plan, seconds = plan_and_seconds(2.4, truths, stopping=Stopping(blocks=6), seed=1)
    stage = Stage(tmp_path, medians=seconds, fails_at=("warmup", 1, 2))
    run_id = stage.start(plan)
    stage.resume(run_id, CampaignLimits(blocks=12))
    record = stage.ledger.read_run(run_id)
    assert all(2 not in draw.order for draw in record.draws[1:])
    assert outcome.tested_causes(record)[0].tested[0].unknown_because is not None


def test_a_plan_that_explains_nothing_tested_nothing(tmp_path: Path) -> None:
    record = record_of(tmp_path, (Truth(1.0),))
    plain = msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, terms=None))
    assert result_of(plain).why == ()


def test_the_ledger_finds_the_campaigns_that_explain_another(tmp_path: Path) -> None:
    plan, seconds = plan_and_seconds(2.4, (Truth(1.0),), stopping=NO_LIMIT, seed=1)
    stage = Stage(tmp_path, medians=seconds)
    of = stage.start(msgspec.structs.replace(plan, terms=None))
    repeated = with_terms(plan, run=of)
    first, second = (stage.start(msgspec.structs.replace(repeated, seed=seed)) for seed in (2, 3))
    stage.start(plan)
    assert stage.ledger.runs_explaining(of) == (second, first)
    assert stage.ledger.runs_explaining(first) == ()
