"""Check whether an intervention reaches a cause: whether it changes the evidence of the cause.

The evidence names calls, faults or functions. If an intervention leaves them unchanged, it has not
removed the cause, so times with the intervention refute nothing. To check calls, threads and
functions, the slower condition with the intervention is observed once. Page faults and blocks from
the disk are checked in the trials of the experiment.

Three values are compared: ``slower_value`` of the slower condition, ``faster_value`` of the faster
condition, and ``changed_value`` of the slower condition with the intervention.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from statistics import fmean, median
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from equipoise.kinds.explain.terms import PlannedIntervention, experiment_of
from equipoise.model.plan import Plan
from equipoise.model.record import Accounting, Observation, Trial
from equipoise.model.why import Explanation, ReachCheck
from equipoise.why.causes.unclaimed import is_named
from equipoise.why.differences.allocations import is_inside_allocator
from equipoise.why.differences.stacks import call_paths
from equipoise.why.evidence.collect import EvidenceRun
from equipoise.why.evidence.observer import Function, SampledStacks, SystemCalls
from equipoise.why.evidence.sources import SOURCES, EvidenceSet, Side
from equipoise.why.interventions.intervention import ChangedProperty

MIN_REMOVED_FRACTION = 0.5
"""Minimum fraction of the surplus (slower value minus faster value) that an intervention must
remove. If most of a cause remains, times do not test the cause."""

MIN_FUNCTION_S = 0.02
"""Minimum seconds of a function in a profile, about 20 samples; fewer samples show nothing."""

_UNCHANGED_FRACTION = 0.95
"""Minimum fraction of the count without the intervention that a sentence calls "as before"."""

_CALL_CAUSES = frozenset(
    "blocks_returned_at_free memory_given_back sync_per_record tiny_writes tiny_reads "
    "sleeping".split()
)
"""Causes whose evidence is a system call that the slower condition makes more often."""

_CALL_THAT_CHOOSES_CPUS = "sched_setaffinity"
Observe = Callable[[Plan, EvidenceRun], Observation | None]
"""Function that makes one observed run of a plan, and returns ``None`` if the run failed."""


TRIAL_COUNTS: Mapping[str, tuple[Callable[[Accounting], float | None], str]] = MappingProxyType(
    {
        "page_faults": (
            lambda counts: (
                None
                if counts.minor_faults is None
                else counts.minor_faults + (counts.major_faults or 0)
            ),
            "page faults happened",
        ),
        "block_reads": (lambda counts: counts.block_reads, "blocks were read from the disk"),
    }
)
"""Counts of each trial by name, with the beginning of the sentence "… as often as before"."""

_COUNT_OF_CAUSE = {
    "page_faults": "page_faults",
    "huge_pages_off": "page_faults",
    "fork_of_large_process": "page_faults",
    "cold_file": "block_reads",
}
"""Name of the count in `TRIAL_COUNTS` that is the evidence of a cause."""


class ValueCheck(Struct, frozen=True):
    """One value of an observed run, and the sentence about the value if it stayed unchanged."""

    source: str
    value_of: Callable[[Any], float]
    unchanged_sentence: Callable[[float, float, float], str | None]
    """Function of the slower, the faster and the changed value. It returns the sentence, or
    ``None`` if the value changed, or is too small to show a change."""


class UnalteredEvidence(Struct, frozen=True):
    """The evidence of both conditions without an intervention."""

    evidence: EvidenceSet = EvidenceSet()
    slower: Side = "candidate"


def reach_checks_of(
    plan: Plan,
    attempt: PlannedIntervention,
    changed_property: ChangedProperty,
    unaltered_evidence: UnalteredEvidence,
    observe: Observe,
) -> tuple[ReachCheck, ...]:
    """Return the checks in the trials, and the failed checks of observed runs.

    For each source of evidence, the slower condition with the intervention is observed once.
    """
    value_checks: dict[int, ValueCheck] = {}
    reach_checks: list[ReachCheck] = []
    for cause_index, cause in enumerate(experiment_of(plan).causes):
        if cause.cause not in attempt.causes:
            continue
        check = _check_of_cause(changed_property, cause, unaltered_evidence)
        if changed_property == "evidence of the cause" and cause.cause in _COUNT_OF_CAUSE:
            count = _COUNT_OF_CAUSE[cause.cause]
            reach_checks.append(ReachCheck(cause_index, decreasing_value=count))
        elif check is not None:
            value_checks[cause_index] = check
    condition_with = (
        attempt.candidate_with
        if unaltered_evidence.slower == "candidate"
        else attempt.baseline_with
    )
    for source in dict.fromkeys(check.source for check in value_checks.values()):
        run = _decoded_run(observe(plan, EvidenceRun(source, condition_with, 1)))
        if run is None:
            continue
        for cause_index, check in value_checks.items():
            if check.source == source:
                sentence = _unchanged_sentence(check, unaltered_evidence, run)
                if sentence is not None:
                    reach_checks.append(ReachCheck(cause_index, unchanged_sentence=sentence))
    return tuple(reach_checks)


def reaches_any(plan: Plan, attempt: PlannedIntervention, checks: Iterable[ReachCheck]) -> bool:
    """Return whether an attempt may reach one of its causes, or has no cause."""
    missed_causes = {check.cause_index for check in checks if check.unchanged_sentence is not None}
    tested_causes = {
        cause_index
        for cause_index, cause in enumerate(experiment_of(plan).causes)
        if cause.cause in attempt.causes
    }
    return not tested_causes or not tested_causes <= missed_causes


def unchanged_count_sentence(
    name: str, attempt: PlannedIntervention, blocks: Iterable[tuple[Trial, ...]], slower: Side
) -> str | None:
    """Return the sentence that a count stayed unchanged in the blocks of an attempt.

    ``name`` is a key of `TRIAL_COUNTS`. Return ``None`` if the count fell, is not larger in the
    slower condition, or is unknown.
    """
    conditions = (attempt.candidate_without, attempt.baseline_without, attempt.candidate_with)
    if slower == "baseline":
        conditions = (attempt.baseline_without, attempt.candidate_without, attempt.baseline_with)
    *_, changed_condition = conditions
    count_of, event = TRIAL_COUNTS[name]
    blocks_of_attempt = [
        block for block in blocks if any(trial.condition == changed_condition for trial in block)
    ]
    trials = itertools.chain.from_iterable(blocks_of_attempt)
    counts = [(trial.condition, count_of(trial.accounting)) for trial in trials]
    values_by_condition = [
        [value for index, value in counts if index == condition and value is not None]
        for condition in conditions
    ]
    if not all(values_by_condition):
        return None
    return _count_sentence(event, *map(median, values_by_condition))


def _check_of_cause(
    changed_property: ChangedProperty, cause: Explanation, unaltered_evidence: UnalteredEvidence
) -> ValueCheck | None:
    """Return the check of one cause in an observed run; ``None`` if there is no check for it."""
    syscall, file = cause.evidence.get("syscall"), cause.evidence.get("file")
    function = cause.evidence.get("function")
    match changed_property, cause.cause:
        case "threads", _:
            return ValueCheck("system_calls", lambda run: float(run.threads), _thread_sentence)
        case "CPUs", _:
            return ValueCheck(
                "system_calls",
                lambda run: _call_count(run, _CALL_THAT_CHOOSES_CPUS),
                _affinity_sentence,
            )
        case "the output", _ if isinstance(file, str) and is_named(file):
            return _call_count_check(lambda run: _write_count(run, file), f"{file} was written to")
        case "evidence of the cause", name if name in _CALL_CAUSES and isinstance(syscall, str):
            return _call_count_check(
                lambda run: _call_count(run, syscall), f"{syscall}(2) was called"
            )
        case "evidence of the cause", "more_allocations":
            return _allocator_check(unaltered_evidence)
        case "evidence of the cause", "wrong_blas_kernel" if isinstance(function, str):
            return _function_time_check(lambda called: called.name == function, f"{function}() ran")
    return None


def _call_count_check(count_of: Callable[[Any], float], event: str) -> ValueCheck:
    return ValueCheck("system_calls", count_of, partial(_count_sentence, event))


def _function_time_check(is_counted: Callable[[Function], bool], event: str) -> ValueCheck:

    def sentence(slower_s: float, faster_s: float, changed_s: float) -> str | None:
        if slower_s < MIN_FUNCTION_S or _has_fallen(slower_s, faster_s, changed_s):
            return None
        if changed_s >= _UNCHANGED_FRACTION * slower_s:
            # A profile consists of samples, so a slightly larger number has no meaning.
            return f"{event} for as long as before: {changed_s:.2g} s"
        return f"{event} for {changed_s:.2g} s, {slower_s:.2g} s before"

    return ValueCheck("profile", lambda run: sum(_function_seconds(run, is_counted)), sentence)


def _allocator_check(unaltered_evidence: UnalteredEvidence) -> ValueCheck | None:
    """Return the check that the memory allocator of the evidence no longer runs."""
    runs = unaltered_evidence.evidence.profile.runs_of(unaltered_evidence.slower)
    modules = {
        stack.functions[-1].module
        for run in runs
        for stack in call_paths(run.stacks)
        if stack.functions and is_inside_allocator(stack.functions[-1])
    }
    if not modules:
        return None
    check = _function_time_check(
        lambda function: function.module in modules and is_inside_allocator(function),
        f"the allocator in {' and '.join(sorted(modules))} ran",
    )
    # Both conditions used this allocator, so all of its time must disappear, not only the surplus.
    return ValueCheck(
        check.source,
        check.value_of,
        lambda slower_s, _, changed_s: check.unchanged_sentence(slower_s, 0.0, changed_s),
    )


def _unchanged_sentence(
    check: ValueCheck, unaltered_evidence: UnalteredEvidence, observed_run: Any
) -> str | None:
    runs = unaltered_evidence.evidence.by_source()[check.source]
    faster: Side = "baseline" if unaltered_evidence.slower == "candidate" else "candidate"
    slower_values, faster_values = (
        [check.value_of(run) for run in runs.runs_of(side) if _is_complete(run)]
        for side in (unaltered_evidence.slower, faster)
    )
    if not slower_values or not faster_values or not _is_complete(observed_run):
        return None
    changed_value = check.value_of(observed_run)
    return check.unchanged_sentence(fmean(slower_values), fmean(faster_values), changed_value)


def _is_complete(run: Any) -> bool:
    """Return whether the counts of an observed run are complete."""
    return not isinstance(run, SystemCalls) or run.is_complete


def _decoded_run(observation: Observation | None) -> Any:
    if observation is None or observation.document is None:
        return None
    return msgspec.json.decode(observation.document, type=SOURCES[observation.source].document)


def _has_fallen(slower_value: float, faster_value: float, changed_value: float) -> bool:
    """Return whether enough of the surplus disappeared, or whether there was no surplus."""
    surplus = slower_value - faster_value
    return surplus <= 0 or slower_value - changed_value >= MIN_REMOVED_FRACTION * surplus


def _thread_sentence(slower_count: float, _: float, changed_count: float) -> str | None:
    if round(slower_count) != round(changed_count):
        return None
    return f"as many threads ran as before: {round(changed_count):,}"


def _affinity_sentence(_: float, __: float, changed_count: float) -> str | None:
    if changed_count == 0:
        return None
    times = _times_text(changed_count)
    return f"the program chose its CPUs itself: {_CALL_THAT_CHOOSES_CPUS}(2) was called {times}"


def _count_sentence(
    event: str, slower_count: float, faster_count: float, changed_count: float
) -> str | None:
    if _has_fallen(slower_count, faster_count, changed_count):
        return None
    if _UNCHANGED_FRACTION * slower_count <= changed_count <= slower_count / _UNCHANGED_FRACTION:
        return f"{event} as often as before: {_times_text(changed_count)}"
    return f"{event} {_times_text(changed_count)}, {_times_text(slower_count)} before"


def _times_text(count: float) -> str:
    return "once" if round(count) == 1 else f"{count:,.0f} times"


def _call_count(run: SystemCalls, name: str) -> float:
    return float(sum(call.count for call in run.calls if call.name == name))


def _write_count(run: SystemCalls, file: str) -> float:
    return float(sum(output.writes for output in run.files if output.name == file))


def _function_seconds(
    run: SampledStacks, is_counted: Callable[[Function], bool]
) -> Iterator[float]:
    for stack in call_paths(run.stacks):
        if stack.entry_point is None and stack.functions and is_counted(stack.functions[-1]):
            yield stack.weight
