"""The pilot of ``--duet`` refuses programs that disturb each other, and names what they share."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from equipoise.campaign.pilot import (
    MAX_PILOT_PAIRS,
    RefusedByPilot,
    pilot_results,
    pilot_warnings,
)
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import Judge, SegmentInProgress
from equipoise.design.coin import draw_block
from equipoise.measure.trials import TrialReport
from equipoise.model.plan import Contrast, Measure, Plan, Stopping
from equipoise.model.record import CampaignWarning, Draw, Trial
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.scripted import ScriptedClock, ScriptedRunner

PLAN = plan_of(measure=Measure("/", cpu_sets=((0,), (1,))))

Change = Callable[[Trial], Trial]


def unchanged(trial: Trial) -> Trial:
    return trial


def pilot(at_once: Change, *, in_turns: Change = unchanged, noise: float = 0.02) -> list[Trial]:
    """The trials of a pilot after one warm-up block; each program takes about a second alone."""
    drawn = random.Random(5)
    trials = []
    for block in range(1, 2 + 2 * MAX_PILOT_PAIRS):
        draw = draw_block(PLAN, "warmup", block)
        for place in (0, 1):
            trial = trial_of(draw, place, drawn.lognormvariate(0.0, noise))
            trial = replace(trial, covariates={"run_delay_s": 0.0})
            trials.append((at_once if PLAN.runs_at_once("warmup", block) else in_turns)(trial))
    return trials


def slower(factor: float, *, of: int | None = None, in_cpu_time: bool = False) -> Change:
    """Slow all trials, or those of one condition, by a factor."""

    def change(trial: Trial) -> Trial:
        if of not in (None, trial.condition):
            return trial
        accounting = trial.accounting
        assert accounting.wall_s is not None
        assert accounting.user_s is not None
        user_s = accounting.user_s * (factor if in_cpu_time else 1.0)
        changed = replace(accounting, wall_s=factor * accounting.wall_s, user_s=user_s)
        return replace(trial, accounting=changed)

    return change


def slower_cpu_time(factor: float) -> Change:
    """Let all trials use more CPU time, as several threads do."""

    def change(trial: Trial) -> Trial:
        assert trial.accounting.user_s is not None
        accounting = replace(trial.accounting, user_s=factor * trial.accounting.user_s)
        return replace(trial, accounting=accounting)

    return change


def waiting_for_a_cpu(trial: Trial, seconds: float = 0.3) -> Trial:
    return replace(trial, covariates={"run_delay_s": seconds})


def test_independent_programs_are_accepted() -> None:
    assert pilot_warnings(PLAN, pilot(unchanged)) == ()
    (result,) = pilot_results(PLAN, pilot(unchanged))
    assert result.pairs == MAX_PILOT_PAIRS
    assert result.disturbance is None
    assert result.slowdown is not None
    assert result.slowdown.factor == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("of", [0, 1])
def test_a_growing_cpu_time_is_a_shared_core_or_memory(of: int) -> None:
    trials = pilot(slower(1.4, of=of, in_cpu_time=True))
    slowed, other = "ab"[of], "ba"[of]
    sentence = rf"{slowed} takes 1\.4\d? times as long while {other} runs: its CPU time grows"
    with pytest.raises(RefusedByPilot, match=sentence):
        pilot_warnings(PLAN, trials)


@pytest.mark.parametrize(("factor", "waiting_s"), [(1.2, 0.0), (1.8, 0.3)])
def test_a_growing_time_without_cpu_time_is_a_shared_lock_or_device(
    factor: float, waiting_s: float
) -> None:
    slow = slower(factor)
    trials = pilot(lambda trial: waiting_for_a_cpu(slow(trial), waiting_s))
    with pytest.raises(RefusedByPilot, match="waits for a lock, a file or a device"):
        pilot_warnings(PLAN, trials)


def test_a_growing_cpu_time_of_a_program_that_sleeps_is_accepted() -> None:
    def asleep(trial: Trial) -> Trial:
        return replace(trial, accounting=replace(trial.accounting, user_s=0.01, sys_s=0.0))

    def grown(trial: Trial) -> Trial:
        return replace(trial, accounting=replace(trial.accounting, user_s=0.02, sys_s=0.0))

    assert pilot_warnings(PLAN, pilot(grown, in_turns=asleep)) == ()


def test_a_program_that_needs_more_than_half_of_the_cpus_is_named() -> None:
    slow, in_two_threads = slower(1.7, of=1), slower_cpu_time(1.8)
    trials = pilot(lambda trial: slow(in_two_threads(trial)), in_turns=in_two_threads)
    sentence = r"b takes 1\.7\d? times as long while a runs: it uses more CPUs than the half"
    with pytest.raises(RefusedByPilot, match=sentence):
        pilot_warnings(PLAN, trials)


def test_a_wait_for_a_cpu_that_other_processes_use_is_no_disturbance() -> None:
    slow = slower(1.4)
    trials = pilot(lambda trial: waiting_for_a_cpu(slow(trial), 0.3))
    assert pilot_warnings(PLAN, trials) == ()


def test_a_small_slowdown_is_accepted() -> None:
    assert pilot_warnings(PLAN, pilot(slower(1.03, in_cpu_time=True))) == ()


def test_trials_that_are_less_sharp_at_once_get_a_warning() -> None:
    drawn = random.Random(6)

    def noisy(trial: Trial) -> Trial:
        return slower(drawn.lognormvariate(0.0, 0.4))(trial)

    (warning,) = pilot_warnings(PLAN, pilot(lambda trial: waiting_for_a_cpu(noisy(trial))))
    assert warning.code == "duet_less_sharp"
    assert "times the seconds that they need in turns" in warning.summary


def test_a_shared_noise_makes_trials_at_once_sharper() -> None:
    drawn = random.Random(7)
    by_block: dict[int, float] = {}

    def shared(trial: Trial) -> Trial:
        return slower(by_block.setdefault(trial.block, drawn.lognormvariate(0.0, 0.3)))(trial)

    def alone(trial: Trial) -> Trial:
        return slower(drawn.lognormvariate(0.0, 0.3))(trial)

    (result,) = pilot_results(PLAN, pilot(shared, in_turns=alone))
    assert result.gain is not None
    low, _ = result.gain.interval
    assert low is not None
    assert low > 3.0


def test_pairs_with_a_timeout_are_left_out() -> None:
    def timed_out(trial: Trial) -> Trial:
        return replace(trial, failure="timed out", failure_kind="timed out")

    (result,) = pilot_results(PLAN, pilot(timed_out))
    assert (result.slowdown, result.disturbance, result.gain) == (None, None, None)


def test_each_comparison_of_a_block_has_its_own_pilot() -> None:
    contrasts = (Contrast(0, 1), Contrast(2, 3))
    plan = replace(plan_of("a", "b", "c", "d", measure=PLAN.measure), chosen_contrasts=contrasts)
    trials = []
    for block in range(1, 22):
        draw = draw_block(plan, "warmup", block)
        # The conditions of a comparison are next to each other, so they run at once.
        pairs = [set(draw.order[:2]), set(draw.order[2:])]
        assert sorted(map(min, pairs)) == [0, 2]
        assert all(pair in ({0, 1}, {2, 3}) for pair in pairs)
        trials += [trial_of(draw, place, 1.0 + 0.01 * (block % 3)) for place in range(4)]
    assert [result.contrast for result in pilot_results(plan, trials)] == list(contrasts)


def test_both_orders_of_a_pair_are_drawn_alike() -> None:
    plan = replace(
        plan_of("a", "b", "c", "d", measure=PLAN.measure),
        chosen_contrasts=(Contrast(0, 1), Contrast(2, 3)),
    )
    orders = [draw_block(plan, "measured", block).order for block in range(1, 1001)]
    for first, second in ((0, 1), (2, 3)):
        count = sum(order.index(first) < order.index(second) for order in orders)
        # Five standard errors of 1000 fair coins.
        assert abs(count - 500) < 80


class Store:
    """Keeps what a segment records."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.trials: list[Trial] = []
        self.warnings: list[CampaignWarning] = []

    def record_draw(self, run_id: str, draw: Draw) -> None:
        self.draws.append(draw)

    def record_trial(self, run_id: str, trial: Trial) -> None:
        self.trials.append(trial)

    def record_warning(self, run_id: str, warning: CampaignWarning) -> None:
        self.warnings.append(warning)


class AllConditions(Judge):
    """Stops at the limit of blocks."""

    def add(self, block: tuple[Trial, ...]) -> None:
        return

    def analyse(self) -> tuple[()]:
        return ()

    def stop_reason(self) -> None:
        return None

    def needed_conditions(self, phase: str, block: int) -> tuple[int, ...]:
        return (0, 1)

    def earliest_block(self) -> int:
        return 1


class PairRunner(ScriptedRunner):
    """Runs trials at once as `DuetRunner` does: one function for two trials."""

    plan: Plan = PLAN

    def trials_at(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        if not self.plan.runs_at_once(draw.phase, draw.block):
            return super().trials_at(draw, place)

        def run() -> TrialReport:
            return replace(self._run(draw, 0), at_once=self._run(draw, 1))

        return () if place else (run,)


def segment(
    store: Store, clock: ScriptedClock, plan: Plan, blocks_before: int = 0, next_warmup: int = 1
) -> SegmentInProgress:
    return SegmentInProgress(
        "run",
        plan,
        plan.stopping,
        store,
        AllConditions(),
        ProgressListener(),
        clock,
        blocks_before=blocks_before,
        next_warmup=next_warmup,
        next_block=1 + blocks_before,
    )


def limited(blocks: int, budget_s: float = 60.0) -> Plan:
    return replace(PLAN, stopping=Stopping(blocks=blocks, budget_s=budget_s, min_seconds=0.0))


def test_a_segment_runs_the_pilot_after_the_warm_up() -> None:
    store, clock = Store(), ScriptedClock()
    segment(store, clock, limited(3)).run(PairRunner(clock))
    phases = [draw.phase for draw in store.draws]
    assert phases == ["warmup"] * (1 + 2 * MAX_PILOT_PAIRS) + ["measured"] * 3
    assert len(store.trials) == 2 * len(store.draws)


def test_a_long_pilot_ends_early() -> None:
    store, clock = Store(), ScriptedClock()
    segment(store, clock, limited(3, budget_s=0.2)).run(PairRunner(clock))
    assert [draw.phase for draw in store.draws].count("warmup") == 1 + 2 * 5


def test_a_resumed_campaign_with_blocks_has_no_second_pilot() -> None:
    store, clock = Store(), ScriptedClock()
    segment(store, clock, limited(5), 3, 22).run(PairRunner(clock))
    assert [draw.phase for draw in store.draws] == ["warmup", "measured", "measured"]


def test_both_trials_are_recorded_before_the_failure_of_one_ends_the_campaign() -> None:
    store, clock = Store(), ScriptedClock()
    draw = draw_block(PLAN, "measured", 2)
    runner = PairRunner(clock, fails_at=("measured", 2, draw.order[0]))
    with pytest.raises(Exception, match="exit status 1"):
        segment(store, clock, limited(9)).run(runner)
    assert [trial.position for trial in store.trials if trial.block == 2][-2:] == [0, 1]
    assert store.trials[-1].failure is None
