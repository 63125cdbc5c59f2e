"""Check whether an intervention reaches a cause: whether it changes the evidence of the cause.

The evidence names calls, faults or functions. An intervention that leaves them unchanged has not
removed the cause, so times with the intervention refute nothing. Calls, threads and functions need
an observed run of the slower condition with the intervention, which is never timed. The campaign's
own trials count page faults and blocks from the disk.

In this file, *before* is the slower condition's value, *after* its value with the intervention, and
*faster* the value of the faster condition.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import fmean, median
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from equipoise.kinds.explain.terms import PlannedIntervention, experiment_of
from equipoise.model.plan import Plan
from equipoise.model.record import Accounting, Observation, Trial
from equipoise.model.why import ExpectedChange, Explanation
from equipoise.why.causes.unclaimed import is_named
from equipoise.why.differences.allocations import is_inside_allocator
from equipoise.why.differences.stacks import call_paths
from equipoise.why.evidence.collect import EvidenceRun
from equipoise.why.evidence.observer import Function, SampledStacks, SystemCalls
from equipoise.why.evidence.sources import SOURCES, EvidenceSet, Side
from equipoise.why.interventions.intervention import ChangedProperty

MIN_REMOVED_FRACTION = 0.5
"""Minimum fraction of the slower condition's surplus that must disappear. The same fraction of the
gap confirms a cause. While most of a cause remains, times do not test the cause."""

MIN_FUNCTION_S = 0.02
"""Minimum seconds of a function in a profile, about 20 samples, to give its absence a meaning."""

_UNCHANGED_FRACTION = 0.95
"""Minimum fraction of the former count that a sentence calls "as before"."""

_CALL_CAUSES = frozenset(
    "blocks_returned_at_free memory_given_back sync_per_record tiny_writes tiny_reads "
    "sleeping".split()
)
"""Causes whose evidence names a system call that the slower condition makes more often."""

_AFFINITY_CALL = "sched_setaffinity"

Observe = Callable[[Plan, EvidenceRun], Observation | None]
"""Function that makes one observed run of a plan, and returns ``None`` if the run failed."""


ACCOUNTS: Mapping[str, tuple[Callable[[Accounting], float | None], str]] = MappingProxyType(
    {
        "page_faults": (
            lambda trial: (
                None
                if trial.minor_faults is None
                else trial.minor_faults + (trial.major_faults or 0)
            ),
            "page faults happened",
        ),
        "block_reads": (lambda trial: trial.block_reads, "blocks were read from the disk"),
    }
)
"""Counts of each trial by name, with the beginning of the sentence "… as often as before"."""

_ACCOUNT_OF_CAUSE = {
    "page_faults": "page_faults",
    "huge_pages_off": "page_faults",
    "fork_of_large_process": "page_faults",
    "cold_file": "block_reads",
}
"""Name of the count in `ACCOUNTS` that is the evidence of a cause."""


class Check(Struct, frozen=True):
    """One value of an observed run, and the sentence to use if the value stayed unchanged."""

    source: str
    value: Callable[[Any], float]
    sentence: Callable[[float, float, float], str | None]
    """Function of the values before, faster and after. It returns the sentence, or ``None`` if the
    value changed as expected or has no meaning."""


class KnownEvidence(Struct, frozen=True):
    """The evidence of both conditions without an intervention."""

    evidence: EvidenceSet = EvidenceSet()
    slower: Side = "candidate"


def expected_changes(
    plan: Plan,
    attempt: PlannedIntervention,
    changes: ChangedProperty,
    known_evidence: KnownEvidence,
    observe: Observe,
) -> tuple[ExpectedChange, ...]:
    """Return the changes that an attempt must cause, and the expected changes that did not happen.

    Each source of evidence needs one observed run of the slower condition with the intervention.
    """
    checks: dict[int, Check] = {}
    expected: list[ExpectedChange] = []
    for cause_index, cause in enumerate(experiment_of(plan).causes):
        if cause.cause not in attempt.causes:
            continue
        account = _ACCOUNT_OF_CAUSE.get(cause.cause) if changes == "what the cause names" else None
        if account is not None:
            expected.append(ExpectedChange(cause_index, account=account))
        elif (check := _check(changes, cause, known_evidence)) is not None:
            checks[cause_index] = check
    condition_with = (
        attempt.candidate_with if known_evidence.slower == "candidate" else attempt.baseline_with
    )
    for source in dict.fromkeys(check.source for check in checks.values()):
        run = _observed_run(observe(plan, EvidenceRun(source, condition_with, 1)))
        if run is None:
            continue
        for cause_index, check in checks.items():
            if check.source == source:
                sentence = _unchanged_sentence(check, known_evidence, run)
                if sentence is not None:
                    expected.append(ExpectedChange(cause_index, unchanged=sentence))
    return tuple(expected)


def reaches_any(
    plan: Plan, attempt: PlannedIntervention, expected: Iterable[ExpectedChange]
) -> bool:
    """Return whether an attempt may reach one of its causes, or has no cause."""
    missed_causes = {change.cause for change in expected if change.unchanged is not None}
    tested_causes = {
        cause_index
        for cause_index, cause in enumerate(experiment_of(plan).causes)
        if cause.cause in attempt.causes
    }
    return not tested_causes or not tested_causes <= missed_causes


def unchanged_account(
    name: str, attempt: PlannedIntervention, blocks: Iterable[tuple[Trial, ...]], slower: Side
) -> str | None:
    """Return the sentence that a count stayed unchanged in the blocks that tried an attempt.

    Return ``None`` if the count fell, is not larger in the slower condition, or is unknown.
    """
    conditions = (attempt.candidate_without, attempt.baseline_without, attempt.candidate_with)
    if slower == "baseline":
        conditions = (attempt.baseline_without, attempt.candidate_without, attempt.baseline_with)
    account, event = ACCOUNTS[name]
    *_, changed = conditions
    attempted = [block for block in blocks if any(trial.condition == changed for trial in block)]
    trials = itertools.chain.from_iterable(attempted)
    accounts = [(trial.condition, account(trial.accounting)) for trial in trials]
    values = [
        [value for index, value in accounts if index == condition and value is not None]
        for condition in conditions
    ]
    if not all(values):
        return None
    before, faster, after = map(median, values)
    return None if _has_fallen(before, faster, after) else _count_sentence(event, before, after)


def _check(
    changes: ChangedProperty, cause: Explanation, known_evidence: KnownEvidence
) -> Check | None:
    """Return the check of one cause in an observed run; ``None`` if there is no check for it."""
    syscall, file = cause.evidence.get("syscall"), cause.evidence.get("file")
    function = cause.evidence.get("function")
    match changes, cause.cause:
        case "threads", _:
            return Check("system_calls", lambda run: float(run.threads), _same_threads)
        case "CPUs", _:
            return Check("system_calls", lambda run: _calls(run, _AFFINITY_CALL), _chosen_cpus)
        case "the file", _ if isinstance(file, str) and is_named(file):
            return _fewer_calls(lambda run: _writes(run, file), f"{file} was written to")
        case "what the cause names", name if name in _CALL_CAUSES and isinstance(syscall, str):
            return _fewer_calls(lambda run: _calls(run, syscall), f"{syscall}(2) was called")
        case "what the cause names", "more_allocations":
            return _other_allocator(known_evidence)
        case "what the cause names", "wrong_blas_kernel" if isinstance(function, str):
            return _shorter_functions(lambda frame: frame.name == function, f"{function}() ran")
    return None


def _fewer_calls(value: Callable[[Any], float], event: str) -> Check:
    """Return the check that a count of system calls falls."""

    def unchanged(before: float, faster: float, after: float) -> str | None:
        return None if _has_fallen(before, faster, after) else _count_sentence(event, before, after)

    return Check("system_calls", value, unchanged)


def _shorter_functions(is_counted: Callable[[Function], bool], event: str) -> Check:
    """Return the check that functions take fewer seconds of a profile."""

    def unchanged(before: float, faster: float, after: float) -> str | None:
        if before < MIN_FUNCTION_S or _has_fallen(before, faster, after):
            return None
        if after >= _UNCHANGED_FRACTION * before:
            # A profile consists of samples, so a slightly larger number has no meaning.
            return f"{event} for as long as before: {after:.2g} s"
        return f"{event} for {after:.2g} s, {before:.2g} s before"

    return Check("profile", lambda run: sum(_seconds(run, is_counted)), unchanged)


def _other_allocator(known_evidence: KnownEvidence) -> Check | None:
    """Return the check that the memory allocator of the evidence no longer runs."""
    runs = known_evidence.evidence.profile.runs_of(known_evidence.slower)
    modules = {
        stack.functions[-1].module
        for run in runs
        for stack in call_paths(run.stacks)
        if stack.functions and is_inside_allocator(stack.functions[-1])
    }
    if not modules:
        return None
    check = _shorter_functions(
        lambda function: function.module in modules and is_inside_allocator(function),
        f"the allocator in {' and '.join(sorted(modules))} ran",
    )
    # Both conditions used this allocator, so all of its time must disappear, not only the surplus.
    return Check(
        check.source, check.value, lambda before, _, after: check.sentence(before, 0.0, after)
    )


def _unchanged_sentence(
    check: Check, known_evidence: KnownEvidence, observed_run: Any
) -> str | None:
    runs = known_evidence.evidence.by_source()[check.source]
    faster: Side = "baseline" if known_evidence.slower == "candidate" else "candidate"
    before, of_faster = (
        [check.value(run) for run in runs.runs_of(side) if _is_complete(run)]
        for side in (known_evidence.slower, faster)
    )
    if not before or not of_faster or not _is_complete(observed_run):
        return None
    return check.sentence(fmean(before), fmean(of_faster), check.value(observed_run))


def _is_complete(run: Any) -> bool:
    """Return whether the counts of an observed run are complete, so that they can be compared."""
    return not isinstance(run, SystemCalls) or run.lost_records == 0


def _observed_run(observation: Observation | None) -> Any:
    if observation is None or observation.document is None:
        return None
    return msgspec.json.decode(observation.document, type=SOURCES[observation.source].document)


def _has_fallen(before: float, faster: float, after: float) -> bool:
    """Return whether enough of the surplus disappeared, or whether there was no surplus."""
    surplus = before - faster
    return surplus <= 0 or before - after >= MIN_REMOVED_FRACTION * surplus


def _same_threads(before: float, faster: float, after: float) -> str | None:
    if round(before) != round(after):
        return None
    count = round(after)
    return f"as many threads ran as before: {count:,}"


def _chosen_cpus(before: float, faster: float, after: float) -> str | None:
    if after == 0:
        return None
    return f"the program chose its CPUs itself: {_AFFINITY_CALL}(2) was called {_times(after)}"


def _count_sentence(event: str, before: float, after: float) -> str:
    if _UNCHANGED_FRACTION * before <= after <= before / _UNCHANGED_FRACTION:
        return f"{event} as often as before: {_times(after)}"
    return f"{event} {_times(after)}, {_times(before)} before"


def _times(count: float) -> str:
    return "once" if round(count) == 1 else f"{count:,.0f} times"


def _calls(run: SystemCalls, name: str) -> float:
    return float(sum(call.count for call in run.calls if call.name == name))


def _writes(run: SystemCalls, file: str) -> float:
    return float(sum(output.writes for output in run.files if output.name == file))


def _seconds(run: SampledStacks, is_counted: Callable[[Function], bool]) -> Iterator[float]:
    for stack in call_paths(run.stacks):
        if stack.entry is None and stack.functions and is_counted(stack.functions[-1]):
            yield stack.weight
