"""The quick part of the simulations in docs/evidence/validity.md, and the rules of peers."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.validity import __main__ as command
from benchmarks.validity.blocks import QUESTIONS, blocks_needed
from benchmarks.validity.campaign import (
    ALPHA,
    BLOCKS,
    Stop,
    covers_always,
    draw_orders,
    first_verdict,
    run,
)
from benchmarks.validity.findings import findings
from benchmarks.validity.layouts import LAYOUTS, LayoutSummary, simulate_layouts, summarise_layouts
from benchmarks.validity.machine import FloatArray, Machine, measure
from benchmarks.validity.pooled import POOLED, PooledSummary, simulate_pools, summarise_pools
from benchmarks.validity.results import NAMES, Results
from benchmarks.validity.rules import RULES, benchstat, hyperfine, pyperf, tachometer, temci
from benchmarks.validity.scenarios import SCENARIOS, Scenario
from benchmarks.validity.shares import Share, most_by_chance
from benchmarks.validity.show import (
    BEGIN,
    END,
    FINDINGS_BEGIN,
    FINDINGS_END,
    NoMarkers,
    findings_into_document,
    into_document,
)
from benchmarks.validity.simulate import RUNS, simulate
from benchmarks.validity.summary import Summary, broken_claims, summarise
from equipoise.stats.verdict import judge
from packages.equipoise.tests.programs import finished

CAMPAIGNS = 40
SEED = 20
ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "evidence" / "validity.md"


def scenario_named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


@cache
def summaries() -> dict[str, Summary]:
    """Every scenario, few campaigns each, always the same ones."""
    outcomes = simulate(SCENARIOS, CAMPAIGNS, seed=SEED, workers=1)
    return {one.name: summarise(one, outcomes[one.name]) for one in SCENARIOS}


@cache
def pools() -> dict[str, PooledSummary]:
    """Every scenario of pools, few pools each, always the same ones."""
    return {
        one.name: summarise_pools(one, simulate_pools(one.name, 0, 100 // one.campaigns, SEED))
        for one in POOLED
    }


@cache
def over_layouts() -> dict[str, LayoutSummary]:
    """Every scenario of layouts, few campaigns each, always the same ones."""
    return {
        one.name: summarise_layouts(one, simulate_layouts(one.name, 0, CAMPAIGNS // 2, SEED))
        for one in LAYOUTS
    }


def results() -> Results:
    """All of them together."""
    return Results(
        tuple(summaries().values()), tuple(pools().values()), tuple(over_layouts().values())
    )


def pooled(shares: list[Share]) -> Share:
    return Share(sum(one.count for one in shares), sum(one.total for one in shares))


def test_no_claim_is_broken_in_any_scenario() -> None:
    assert results().broken_claims() == []


def test_campaigns_that_stopped_are_pooled_with_the_coverage_that_is_claimed() -> None:
    alike = [one for one in pools().values() if one.scenario.claims_common_ratio]
    assert not pooled([one.common_missed for one in alike]).exceeds(ALPHA)
    assert not pooled([one.mean_missed for one in pools().values()]).exceeds(ALPHA)
    assert pools()["20 stopped campaigns"].naive_missed.exceeds(ALPHA)


def test_the_claim_across_layouts_is_none_about_the_drawn_ones() -> None:
    everything = list(over_layouts().values())
    assert not pooled([one.called for one in everything]).exceeds(ALPHA)
    assert not pooled([one.missed for one in everything]).exceeds(ALPHA)
    assert pooled([one.called_in_these for one in everything]).exceeds(ALPHA)
    assert over_layouts()["12 layouts, 3 %, normal"].found.count > CAMPAIGNS // 8


def test_all_claimed_scenarios_together_have_no_more_false_alarms_than_alpha() -> None:
    claimed = [one for one in summaries().values() if one.scenario.claims_error_rate]
    assert len(claimed) == 21
    assert not pooled([one.any_effect for one in claimed]).exceeds(ALPHA)
    assert not pooled([one.default for one in claimed]).exceeds(ALPHA)


def test_all_claimed_scenarios_together_miss_the_truth_no_more_often_than_alpha() -> None:
    claimed = [one.missed for one in summaries().values() if one.scenario.claims_coverage]
    known = [one.probability_missed for one in summaries().values()]
    assert len(claimed) == 19
    assert not pooled(claimed).exceeds(ALPHA)
    assert not pooled([one for one in known if one is not None]).exceeds(ALPHA)


def test_three_percent_is_found_in_two_percent_of_noise() -> None:
    found = summaries()["Gauss 2 %"].found[3.0]
    assert found.slower.count >= CAMPAIGNS - 1
    assert found.length.median < 30


def test_where_nothing_is_claimed_it_is_shown_what_happens() -> None:
    carried = summaries()["unequal carry-over"]
    assert carried.verdicts["slower"].count > 0.9 * CAMPAIGNS
    assert carried.warned.count > CAMPAIGNS / 2
    shapes = summaries()["90/10 shapes"]
    assert shapes.verdicts["mixed"].count > CAMPAIGNS / 4
    assert shapes.verdicts["faster"].count + shapes.verdicts["mixed"].count > 0.9 * CAMPAIGNS


def test_commands_that_run_one_after_the_other_are_told_apart_by_a_drift() -> None:
    peers = summaries()["drift"].peers
    for one_after_the_other in ("hyperfine, Welch", "benchstat", "pyperf"):
        assert peers[one_after_the_other].called.count == CAMPAIGNS
    assert summaries()["slot 5 %"].peers["tachometer"].called.count > 0.9 * CAMPAIGNS


@pytest.mark.parametrize("name", ["Gauss 2 %", "spikes", "timeouts", "90/10 shapes"])
@pytest.mark.parametrize("min_effect", [0.0, 1.0])
def test_the_first_verdict_is_that_of_a_look_after_every_block(
    name: str, min_effect: float
) -> None:
    for seed in (3, 4):
        machine = scenario_named(name).draw(np.random.default_rng(seed), RUNS)
        blocks = run(machine, draw_orders(seed), 0.012)
        whole = blocks.paired()
        looked = Stop("undecided", BLOCKS)
        growing = blocks.paired(0)
        for index in range(BLOCKS):
            growing.append(
                float(whole.baseline[index]),
                float(whole.candidate[index]),
                int(blocks.signs[index]),
            )
            verdict = judge([growing], min_effect=min_effect, alpha=ALPHA)[0].verdict
            if verdict != "undecided":
                looked = Stop(verdict, index + 1)
                break
        assert first_verdict(blocks, whole, min_effect) == looked


def test_the_truth_counts_as_missed_if_it_was_ever_left_out() -> None:
    noise = 0.01 * np.random.default_rng(6).standard_normal(RUNS)
    # From the middle on the candidate takes 10 % longer than before.
    shift = np.where(np.arange(RUNS) < BLOCKS, 0.0, 0.1)
    blocks = run(Machine(np.array([noise, noise + shift])), draw_orders(5), 0.02)
    assert covers_always(blocks.paired(90), 0.02)
    assert not covers_always(blocks.paired(), 0.02)


def test_the_answer_does_not_depend_on_the_number_of_workers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--campaigns", "27", "--scenario", "AR(1) 0.6", "--workers"]
    # In a process of their own: workers leave a helper behind until the program ends.
    together = finished(
        [sys.executable, "-m", "benchmarks.validity", *arguments, "2"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    ).stdout
    monkeypatch.setattr(sys, "argv", ["validity", *arguments, "1"])
    assert command.main() == 0
    assert capsys.readouterr().out == together


def test_every_tool_meets_the_same_noise_in_its_own_order() -> None:
    machine = Machine(np.array([[0.0, 1.0, 2.0, 3.0]] * 2))
    one_after_the_other = measure(machine, np.array([0, 0, 1, 1]), 0.5)
    in_turns = measure(machine, np.array([0, 1, 0, 1]), 0.5)
    np.testing.assert_allclose(np.log(one_after_the_other), [0.0, 1.0, 2.5, 3.5])
    np.testing.assert_allclose(np.log(in_turns), [0.0, 1.5, 2.0, 3.5])


def test_what_ran_before_is_carried_over_to_whatever_follows() -> None:
    machine = Machine(np.zeros((2, 4)), carried=(0.3, 0.1))
    times = measure(machine, np.array([0, 1, 1, 0]), 0.0)
    np.testing.assert_allclose(np.log(times), [0.0, 0.3, 0.1, 0.1])


def test_a_clock_counts_whole_ticks_and_a_limit_ends_a_run() -> None:
    logs = np.log([[1.04, 1.04, 1.96, 3.0]] * 2)
    machine = Machine(logs, quantum=0.1, phases=np.array([0.0, 0.7, 0.0, 0.0]), time_limit=2.0)
    times = measure(machine, np.array([0, 0, 0, 0]), 0.0)
    np.testing.assert_allclose(times, [1.0, 1.1, 1.9, np.inf])


FIRST = np.array([10.1, 10.3, 9.9, 10.2, 10.0, 10.4, 9.8, 10.15, 10.05, 10.25])
CLOSE = FIRST[::-1] + 0.05
APART = FIRST + np.linspace(0.1, 0.9, 10)


@pytest.mark.parametrize("second", [CLOSE, APART])
def test_hyperfine_calls_by_the_test_of_welch(second: FloatArray) -> None:
    p = stats.ttest_ind(FIRST, second, equal_var=False).pvalue
    assert hyperfine.decide(FIRST, second).call == ("slower" if p < 0.05 else None)
    assert hyperfine.decide(second, FIRST).call == ("faster" if p < 0.05 else None)
    assert hyperfine.decide(FIRST, second).runs == 20


@pytest.mark.parametrize("second", [CLOSE, APART, np.round(APART)])
def test_benchstat_calls_by_the_test_of_mann_and_whitney(second: FloatArray) -> None:
    p = stats.mannwhitneyu(FIRST, second).pvalue
    assert benchstat.decide(FIRST, second).call == ("slower" if p < 0.05 else None)
    assert benchstat.decide(second, FIRST).call == ("faster" if p < 0.05 else None)


def test_benchstat_sees_no_difference_in_equal_readings() -> None:
    assert benchstat.decide(np.ones(10), np.ones(10)).call is None


@pytest.mark.parametrize("shift", [0.2, 0.5])
def test_pyperf_tests_sixty_values_and_leaves_out_what_warms_up(shift: float) -> None:
    random = np.random.default_rng(1)
    first, second = random.normal(10.0, 1.0, (2, 20, 4))
    second += shift
    first[:, 0], second[:, 0] = 50.0, 1.0
    values = first[:, 1:].ravel(), second[:, 1:].ravel()
    p = stats.ttest_ind(*values).pvalue
    decision = pyperf.decide(first.ravel(), second.ravel())
    assert decision.call == ("slower" if p < 0.05 else None)
    assert decision.runs == 160


@pytest.mark.parametrize("shift", [0.0, 0.2, 2.0])
def test_tachometer_goes_on_from_fifty_rounds_until_the_interval_clears_zero(
    shift: float,
) -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(1.0, 0.5, (2, tachometer.MAX_ROUNDS)) + [[0.0], [shift]]
    first, second = np.abs(first), np.abs(second)
    rounds, call, spent = 50, None, 0.0
    while True:
        interval = stats.ttest_ind(
            second[:rounds], first[:rounds], equal_var=False
        ).confidence_interval(0.95)
        if interval.low > 0 or interval.high < 0:
            call = "slower" if interval.low > 0 else "faster"
            break
        if spent >= 180.0:
            break
        spent += 0.3 * (first[rounds] + second[rounds])
        rounds += 1
    decision = tachometer.decide(first, second)
    assert (decision.call, decision.runs) == (call, 2 * rounds)


@pytest.mark.parametrize(("seed", "shift"), [(0, 0.0), (1, 0.25), (2, 0.25), (3, 0.25), (4, 1.0)])
def test_temci_goes_on_from_twenty_blocks_until_p_leaves_its_range(seed: int, shift: float) -> None:
    first, second = np.random.default_rng(seed).normal(10.0, 1.0, (2, 101)) + [[0.0], [shift]]
    first[0], second[0] = 100.0, 1.0
    for blocks in range(20, 101):
        p = stats.ttest_ind(first[1 : blocks + 1], second[1 : blocks + 1]).pvalue
        if not 0.05 <= p <= 0.15:
            break
    decision = temci.decide(first, second)
    higher = second[1 : blocks + 1].mean() > first[1 : blocks + 1].mean()
    assert decision.call == (("slower" if higher else "faster") if p < 0.05 else None)
    assert decision.runs == 2 * (blocks + 1)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_runs_both_conditions_equally_often_and_calls_by_direction(
    rule: object,
) -> None:
    (asked,) = [one for one in RULES if one is rule]
    schedule = asked.schedule(np.random.default_rng(0))
    assert len(schedule) <= RUNS
    assert (schedule == 0).sum() == (schedule == 1).sum()
    noise = 0.01 * np.random.default_rng(1).standard_normal((2, len(schedule) // 2))
    baseline, candidate = np.exp(noise + [[0.0], [0.1]])
    assert asked.decide(baseline, candidate).call == "slower"
    assert asked.decide(candidate, baseline).call == "faster"


@pytest.mark.parametrize("name", ["1 % at sd 2 %", "equivalent within 1 % at sd 2 %"])
def test_blocks_needed_are_those_of_the_whole_campaign(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (question,) = [one for one in QUESTIONS if one.name == name]
    needed = [blocks_needed(question, np.random.default_rng(seed)) for seed in range(5)]
    monkeypatch.setattr("benchmarks.validity.blocks.FIRST_TRY", question.max_blocks)
    assert needed == [blocks_needed(question, np.random.default_rng(seed)) for seed in range(5)]
    assert max(needed) > 2 * 32


def test_a_share_knows_what_chance_allows() -> None:
    assert most_by_chance(2000, 0.05) == 131
    assert not Share(131, 2000).exceeds(0.05)
    assert Share(132, 2000).exceeds(0.05)
    low, high = Share(50, 2000).interval
    reference = stats.binomtest(50, 2000).proportion_ci(0.95, method="exact")
    assert (low, high) == pytest.approx((reference.low, reference.high))
    assert Share(0, 40).interval[0] == 0.0
    assert Share(40, 40).interval[1] == 1.0


def test_a_claim_that_is_broken_is_said_and_one_that_is_not_made_is_not() -> None:
    broken = Share(20, CAMPAIGNS)
    claimed = replace(summaries()["drift"], any_effect=broken)
    assert len(broken_claims(claimed)) == 1
    assert "drift" in broken_claims(claimed)[0]
    assert broken_claims(replace(summaries()["unequal carry-over"], any_effect=broken)) == []


def test_a_row_with_fewer_campaigns_is_judged_by_the_bound_of_its_own_number() -> None:
    alike, differing = pools()["5 stopped campaigns"], pools()["10 that differ"]
    assert alike.common_missed.total == 20
    few, many = Share(most_by_chance(20, ALPHA), 20), Share(most_by_chance(20, ALPHA) + 1, 20)
    assert replace(alike, common_missed=few).broken_claims() == []
    (words,) = replace(alike, common_missed=many).broken_claims()
    assert words.startswith("5 stopped campaigns: intervals of the common ratio miss it in 6 of 20")
    # Campaigns that differ have no ratio in common, but a mean.
    assert replace(differing, common_missed=many).broken_claims() == []
    assert len(replace(differing, mean_missed=many).broken_claims()) == 1
    layouts = replace(over_layouts()["6 layouts, 5 %, exponential"], called=many)
    assert len(layouts.broken_claims()) == 1


def test_the_findings_have_their_figures_from_the_tables() -> None:
    text = findings(results())
    assert text.startswith("## What it shows\n\n- **Claimed: false alarms of at most 5 %")
    assert "\n## What is not claimed\n" in text
    single = list(results().single)
    place = next(i for i, one in enumerate(single) if one.scenario.name == "rare slow runs")
    verdicts = {**single[place].verdicts, "equivalent": Share(377, 1000)}
    single[place] = replace(single[place], verdicts=verdicts)
    layouts = [replace(one, called=Share(123, 1000)) for one in results().layouts]
    changed = findings(Results(tuple(single), results().pooled, tuple(layouts)))
    assert "the verdict is `equivalent` in 37.7 %" in changed
    assert "is wrong in 12.3 % with normal effects and in 12.3 % with exponential ones" in changed
    assert "37.7 %" not in text and "12.3 %" not in text


@pytest.mark.parametrize(("said", "status"), [([], 0), (["it is broken"], 1)])
def test_the_command_fails_if_a_claim_is_broken(
    said: list[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["validity", "--campaigns", "2", "--scenario", "drift", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(Results, "broken_claims", lambda _: said)
    assert command.main() == status
    printed = capsys.readouterr()
    assert "2 campaigns for each scenario" in printed.out
    assert ("it is broken" in printed.err) == (status == 1)


def test_tables_and_findings_go_between_the_markers_of_a_document(tmp_path: Path) -> None:
    document = tmp_path / "validity.md"
    document.write_text(
        f"before\n{FINDINGS_BEGIN}\nold\n{FINDINGS_END}\nbetween\n{BEGIN}\nold\n{END}\nafter\n",
        encoding="utf-8",
    )
    into_document(document, results().tables(), "how it was made")
    findings_into_document(document, "what it shows")
    written = document.read_text(encoding="utf-8")
    assert written.startswith(
        f"before\n{FINDINGS_BEGIN}\nwhat it shows\n{FINDINGS_END}\nbetween\n"
        f"{BEGIN}\nhow it was made\n"
    )
    assert written.endswith(f"{END}\nafter\n")
    assert "\nold\n" not in written
    for name in NAMES:
        assert f"| {name} |" in written
    document.write_text("no place", encoding="utf-8")
    with pytest.raises(NoMarkers):
        into_document(document, (), "")
    with pytest.raises(NoMarkers):
        findings_into_document(document, "")


def test_a_document_is_written_from_all_scenarios_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["validity", "--scenario", "drift", "--markdown", str(DOCUMENT)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit):
        command.main()
    assert "leave --scenario out" in capsys.readouterr().err


def test_the_document_shows_every_scenario_and_every_rule() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    for name in [*NAMES, *(rule.name for rule in RULES)]:
        assert f"| {name} |" in document
