"""Which gap is explained, and that its explanation is a pure function of the record."""

from __future__ import annotations

import json
import sys

import msgspec
import msgspec.structs
import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.kinds.explain.plan import GapWithCauses
from equipoise.kinds.imported.terms import ImportSource
from equipoise.measure.installation import host_site
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Contrast, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, Observation, RunRecord, Trial
from equipoise.report.json_document import encode
from equipoise.why.evidence.collect import EvidenceRequest, missing_runs, observe
from equipoise.why.evidence.sources import DEFAULT_SOURCES
from equipoise.why.explanation import latest_evidence, with_causes
from equipoise.why.gap import choose_gap, explains_gap, largest_gap, nothing_to_explain_sentence
from equipoise.why.result import latest_experiment, result_of
from packages.equipoise.tests.kinds.explain.simulated import (
    NOISES,
    Truth,
    campaign,
    plan_and_seconds,
)
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.scripted import ScriptedStarter
from packages.equipoise.tests.why.evidence.test_collect import starting, writes_calls

BLOCKS = 20


def record_of(
    *user_s: float,
    system_s: tuple[float, ...] = (),
    observations: tuple[Observation, ...] = (),
    plan: Plan | None = None,
) -> RunRecord:
    """A campaign whose conditions take these times, a little more in each block."""
    names = ("a", "b", "c")[: len(user_s)]
    plan = plan or plan_of(*names)
    system_s = system_s or (0.0,) * len(user_s)
    draws, trials = [], []
    for block in range(1, BLOCKS + 1):
        order = tuple(range(len(user_s)))[:: 1 if block % 2 else -1]
        draws.append(Draw("measured", block, order, 0))
        for position, condition in enumerate(order):
            noise = 1.0 + 0.001 * ((7 * block + 3 * condition) % 11)
            user, system = user_s[condition] * noise, system_s[condition] * noise
            own = Accounting(wall_s=user + system, user_s=user, sys_s=system)
            trials.append(Trial("measured", block, position, condition, 1.0, own, exit=0))
    return RunRecord("run", plan, 1.0, (), tuple(draws), tuple(trials), (), observations)


def profile(seconds: float) -> bytes:
    """A profile of one function that took so long."""
    samples = round(999 * seconds)
    return json.dumps(
        {
            "source": "profile",
            "wall_s": seconds,
            "end": {"exit": 0, "signal": None},
            "samples": samples,
            "total": seconds,
            "stacks": {
                "frames": [{"name": "work", "module": "program", "kind": "user"}],
                "stacks": [{"frames": [0], "samples": samples, "weight": seconds}],
            },
            "unseen": [],
        }
    ).encode()


def profiles(*conditions: tuple[int, float]) -> tuple[Observation, ...]:
    """A gathering of profiles, three of each condition."""
    evidence = [(repetition, *condition) for repetition in (1, 2, 3) for condition in conditions]
    return tuple(
        Observation("profile", condition, repetition, place, 2.0, profile(seconds), None)
        for place, (repetition, condition, seconds) in enumerate(evidence)
    )


def test_only_comparison_is_chosen() -> None:
    gap = choose_gap(record_of(1.0, 2.0))
    assert (gap.comparison.baseline, gap.comparison.candidate) == ("a", "b")
    assert gap.is_explainable
    assert gap.chosen_because is None
    assert len(gap.trials.baseline) == len(gap.trials.candidate) == BLOCKS
    assert gap.longest_trial_s == max(
        trial.accounting.wall_s or 0.0 for trial in gap.trials.candidate
    )


def test_the_largest_called_gap_of_several_is_chosen_with_the_reason() -> None:
    gap = choose_gap(record_of(1.0, 2.0, 0.1))
    assert gap.comparison.candidate == "c"
    assert (
        gap.chosen_because
        == "of 2 comparisons this is the largest gap whose verdict is faster or slower"
    )
    assert largest_gap(record_of(1.0, 2.0, 0.1)) == gap


def test_interventions_are_chosen_by_the_least_ratio_that_the_gap_may_have() -> None:
    for seconds in ((1.0, 37.0), (37.0, 1.0)):
        gap = choose_gap(record_of(*seconds))
        low, high = gap.comparison.ratio_ci
        assert gap.ratio_nearest_to_1 == (low if seconds[0] < seconds[1] else high)
        site = host_site()
        assert GapWithCauses(record_of(*seconds), gap.contrast, ratio=37.0).case(site).ratio == 37.0


def test_a_named_comparison_is_chosen_whatever_its_size() -> None:
    gap = choose_gap(record_of(1.0, 2.0, 0.1), candidate="b")
    assert (gap.comparison.candidate, gap.chosen_because) == ("b", None)


@pytest.mark.parametrize(
    ("baseline", "candidate", "what"),
    [(None, "z", "no condition 'z'"), ("b", "c", "does not compare c with b")],
)
def test_unknown_comparison_is_refused_with_the_known_ones(
    baseline: str | None, candidate: str, what: str
) -> None:
    with pytest.raises(UnusableInput, match=what) as refusal:
        choose_gap(record_of(1.0, 2.0, 0.1), baseline, candidate)
    assert "b" in str(refusal.value.hint)


def test_an_imported_campaign_is_refused() -> None:
    record = record_of(1.0, 2.0)
    source = ImportSource("hyperfine", None, ("x.json",), "in blocks")
    imported = replace(record, plan=replace(record.plan, terms=source))
    with pytest.raises(UnusableInput, match="was imported"):
        choose_gap(imported)
    assert largest_gap(imported) is None


def test_a_campaign_without_a_complete_block_is_refused() -> None:
    record = record_of(1.0, 2.0)
    with pytest.raises(UnusableInput, match="no complete block"):
        choose_gap(replace(record, trials=record.trials[:1]))


def test_equal_times_need_no_explanation() -> None:
    record = record_of(1.0, 1.0)
    gap = choose_gap(record)
    assert not gap.is_explainable
    assert nothing_to_explain_sentence(gap).startswith("there is nothing to explain: ")
    # Even if somebody has observed them.
    assert result_of(replace(record, observations=profiles((0, 1.0), (1, 1.0)))).why == ()


def test_a_remark_states_that_time_is_explained_where_another_metric_was_compared() -> None:
    plan = plan_of()
    judged = replace(plan, judgement=replace(plan.judgement, primary_metric="user_s"))
    remark = "Equipoise explains wall time, not user_s"
    assert remark in nothing_to_explain_sentence(choose_gap(record_of(1.0, 1.0, plan=judged)))
    assert remark not in nothing_to_explain_sentence(choose_gap(record_of(1.0, 1.0)))


def test_a_campaign_on_another_metric_is_explained_by_its_times() -> None:
    plan = plan_of()
    memory = replace(plan, judgement=replace(plan.judgement, primary_metric="user_s"))
    gap = choose_gap(record_of(1.0, 1.0, system_s=(0.1, 1.0), plan=memory))
    assert (gap.comparison.metric, gap.comparison.verdict) == ("wall_s", "slower")


def test_the_extra_time_is_split_by_the_accounts_of_the_trials() -> None:
    observations = profiles((0, 1.0), (1, 2.0))
    record = record_of(1.0, 1.1, system_s=(0.1, 1.0), observations=observations)
    document = validated(result_of(record))
    extra = document.extra_time
    assert extra is not None
    assert (extra.baseline, extra.candidate, extra.slower) == ("a", "b", "b")
    assert extra.gap_s == pytest.approx(1.0, rel=0.02)
    shares = {part.part: part.share_of_gap for part in extra.parts}
    assert shares["system"] == pytest.approx(0.9, abs=0.01)
    assert shares["user"] == pytest.approx(0.1, abs=0.01)
    assert extra.summary.startswith("90 % of the extra time is system time and 10 % user time")
    assert extra.run_counts == {"profile": (3, 3)}


def test_without_observations_nothing_is_explained() -> None:
    document = result_of(record_of(1.0, 2.0))
    assert (document.why, document.extra_time) == ((), None)


def test_the_same_record_gives_the_same_bytes() -> None:
    record = record_of(1.0, 2.0, observations=profiles((0, 1.0), (1, 2.0)))
    assert encode(result_of(record)) == encode(result_of(record))


def test_each_source_without_results_has_a_reason() -> None:
    failed = Observation("waits", 0, 1, 6, 2.0, None, "perf_event_open: not permitted")
    observations = (*profiles((0, 1.0), (1, 2.0)), failed)
    extra = result_of(record_of(1.0, 2.0, observations=observations)).extra_time
    assert extra is not None
    assert extra.unseen["waits"] == ("perf_event_open: not permitted",)


def test_the_last_observed_pair_is_shown_or_the_named_one() -> None:
    observations = (*profiles((0, 1.0), (1, 2.0)), *profiles((0, 1.0), (2, 0.1)))
    record = record_of(1.0, 2.0, 0.1, observations=observations)
    shown = result_of(record)
    assert shown.extra_time is not None
    assert (shown.extra_time.candidate, shown.extra_time.slower) == ("c", "a")
    request = with_causes(shown, record, None, choose_gap(record, candidate="b")).extra_time
    assert request is not None
    assert (request.candidate, request.run_counts) == ("b", {"profile": (3, 3)})


class Notes:
    """Keeps observations as the ledger does."""

    def __init__(self) -> None:
        self.kept: list[Observation] = []

    def record_observation(self, run_id: str, observation: Observation) -> None:
        self.kept.append(observation)


def test_each_observation_is_kept_before_the_next_run_starts() -> None:
    record = record_of(1.0, 2.0, plan=plan_of(measure=Measure("/")))
    gap, notes = choose_gap(record), Notes()
    starter = ScriptedStarter()

    def check(request: object) -> None:
        assert len(notes.kept) == len(starter.requests) - 1

    starter.does = check
    runs = missing_runs(record, gap, EvidenceRequest(sources=("allocations",)))
    progress: list[int] = []
    observe(
        record, gap, runs, notes, on_progress=progress.append, starter_factory=starting(starter)
    )
    assert len(notes.kept) == len(starter.requests) == 6
    assert progress == [1, 2, 3, 4, 5, 6]


def test_a_condition_that_takes_no_effect_any_more_is_not_observed() -> None:
    plan = plan_of(measure=Measure("/"))
    preloaded = replace(
        plan.conditions[1],
        command=(sys.executable, "-S", "-c", ""),
        environment={"LD_PRELOAD": "libgone.so.7"},
    )
    record = record_of(1.0, 2.0, plan=replace(plan, conditions=(plan.conditions[0], preloaded)))
    gap, notes, starter = choose_gap(record), Notes(), ScriptedStarter()
    with pytest.raises(TookNoEffect, match=r"does not load libgone\.so\.7"):
        observe(
            record,
            gap,
            missing_runs(record, gap, EvidenceRequest()),
            notes,
            starter_factory=starting(starter),
        )
    assert (notes.kept, starter.requests) == ([], [])


def test_an_interrupted_observation_goes_on_with_the_missing_runs() -> None:
    record = record_of(1.0, 2.0, plan=plan_of(measure=Measure("/")))
    gap, notes = choose_gap(record), Notes()
    request = EvidenceRequest(sources=("system_calls",))
    runs = missing_runs(record, gap, request)

    def interrupt(made: int) -> None:
        if made == 2:
            raise KeyboardInterrupt

    starter = ScriptedStarter(does=writes_calls())
    with pytest.raises(KeyboardInterrupt):
        observe(record, gap, runs, notes, on_progress=interrupt, starter_factory=starting(starter))
    record = replace(record, observations=tuple(notes.kept))
    missing = missing_runs(record, gap, request)
    assert set(missing) == set(runs[2:])
    observe(record, gap, missing, notes, starter_factory=starting(starter))
    record = replace(record, observations=tuple(notes.kept))
    assert missing_runs(record, gap, request) == ()
    assert len(missing_runs(record, gap, replace(request, repeat_known=True))) == 6
    evidence = latest_evidence(record)
    assert evidence is not None
    assert len(evidence.evidence.system_calls.baseline) == 3


def test_other_sources_are_added_to_known_evidence() -> None:
    record = record_of(1.0, 2.0, observations=profiles((0, 1.0), (1, 2.0)))
    runs = missing_runs(record, choose_gap(record), EvidenceRequest())
    assert {run.source for run in runs} == {*DEFAULT_SOURCES} - {"profile"}


def test_an_observation_is_decoded_as_it_was_encoded() -> None:
    evidence = latest_evidence(record_of(1.0, 2.0, observations=profiles((0, 1.0), (1, 2.0))))
    assert evidence is not None
    (first, *_) = evidence.evidence.profile.baseline
    assert json.loads(msgspec.json.encode(first)) == json.loads(profile(1.0))


def experiment(name: str, *, blocks: int = 30) -> RunRecord:
    """A campaign that confirms its only cause."""
    plan, seconds = plan_and_seconds(2.4, [Truth(1.0)], stopping=Stopping(blocks=blocks), seed=2)
    made = campaign(plan, seconds, NOISES["normal"], np.random.default_rng(3))
    return msgspec.structs.replace(made, id=name)


def explained() -> RunRecord:
    """The same two conditions, compared before."""
    made = experiment("explained")
    plan = msgspec.structs.replace(made.plan, terms=None, study="compare")
    return msgspec.structs.replace(made, plan=plan)


class Shelf:
    """Campaigns that explain any other, the newest first."""

    def __init__(self, *records: RunRecord) -> None:
        self._records = {record.id: record for record in records}

    def runs_explaining(self, run_id: str) -> tuple[str, ...]:
        return tuple(self._records)

    def read_run(self, reference: str) -> RunRecord:
        return self._records[reference]


def test_the_latest_with_a_complete_block_counts() -> None:
    begun = msgspec.structs.replace(experiment("begun"), trials=())
    newer, older = experiment("newer"), experiment("older")
    latest = latest_experiment(explained(), Shelf(begun, newer, older))
    assert latest is newer
    assert latest_experiment(explained(), Shelf()) is None


def test_campaign_of_another_pair_does_not_count() -> None:
    made = explained()
    assert explains_gap(experiment("x"), made, Contrast(0, 1))
    assert not explains_gap(experiment("x"), made, Contrast(0, 2))
    assert latest_experiment(made, Shelf(experiment("x")), Contrast(0, 2)) is None


def test_explained_run_and_test_run_show_the_tests() -> None:
    made, test = explained(), experiment("test")
    shown = validated(result_of(made, test)).why
    assert [(cause.cause, cause.status) for cause in shown] == [("cause 0", "confirmed")]
    assert shown[0].share_of_gap == pytest.approx(1.0, abs=0.1)
    assert validated(result_of(test)).why == shown
    assert validated(result_of(made)).why == ()
