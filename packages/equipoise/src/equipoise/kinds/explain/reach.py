"""Whether an intervention reaches a cause: whether it changes what the evidence of the cause names.

An intervention that leaves the named calls, faults or functions as they were has not removed the
cause, so times with it refute nothing. Calls, threads and functions need an observed run of the
slower condition with the intervention, which is never timed. Page faults and blocks from the disk
are in the accounts of the campaign's own trials.
"""

from __future__ import annotations

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
from equipoise.why.causes.remaining import is_named
from equipoise.why.differences.allocations import is_inside_allocator
from equipoise.why.differences.stacks import places_of
from equipoise.why.evidence.collect import EvidenceRun
from equipoise.why.evidence.observer import Function, SampledStacks, SystemCalls
from equipoise.why.evidence.sources import SOURCES, EvidenceSet, Side
from equipoise.why.interventions.intervention import Changes

REACHED = 0.5
"""Least part of the slower condition's surplus that must be gone: as much as `confirmed` asks of
the gap. Of a cause that is mostly still there, times say nothing."""

MIN_FUNCTION_S = 0.02
"""Least seconds of a function in a profile, about 20 samples, whose absence shows anything."""

_AS_BEFORE = 0.95
"""Part of the former count from which on a sentence says "as before"."""

_CALLS = frozenset(
    "blocks_returned_at_free memory_given_back sync_per_record tiny_writes tiny_reads "
    "sleeping".split()
)
"""Causes that name the system call which is made more often."""

_CHOOSES_CPUS = "sched_setaffinity"

Observe = Callable[[Plan, EvidenceRun], Observation | None]
"""Makes one observed run of a plan; ``None`` if it could not be made."""


ACCOUNTS: Mapping[str, tuple[Callable[[Accounting], float | None], str]] = MappingProxyType(
    {
        "page_faults": (
            lambda one: (
                None if one.minor_faults is None else one.minor_faults + (one.major_faults or 0)
            ),
            "page faults happened",
        ),
        "block_reads": (lambda one: one.block_reads, "blocks were read from the disk"),
    }
)
"""Accounts of each trial, by name, each with the beginning of the sentence "… as before"."""

_ACCOUNT_OF = {
    "page_faults": "page_faults",
    "huge_pages_off": "page_faults",
    "fork_of_large_process": "page_faults",
    "cold_file": "block_reads",
}
"""Account that names a cause, where one does."""


class Check(Struct, frozen=True):
    """One value of an observed run, and the sentence that says how it stayed."""

    source: str
    value: Callable[[Any], float]
    unchanged: Callable[[float, float, float], str | None]
    """Takes the value of the slower condition, of the faster one, and of the slower one with the
    intervention. It returns the sentence, or ``None`` if the value changed as expected or could
    not show anything."""


class KnownEvidence(Struct, frozen=True):
    """What was observed of both conditions without an intervention."""

    evidence: EvidenceSet = EvidenceSet()
    slower: Side = "candidate"


def expected_changes(
    plan: Plan,
    attempt: PlannedIntervention,
    changes: Changes,
    known: KnownEvidence,
    observe: Observe,
) -> tuple[ExpectedChange, ...]:
    """Return what one attempt must change, with what an observed run shows as unchanged.

    Each source that is needed costs one observed run of the slower condition with the intervention.
    """
    checks: dict[int, Check] = {}
    expected: list[ExpectedChange] = []
    for place, cause in enumerate(experiment_of(plan).causes):
        if cause.cause not in attempt.causes:
            continue
        account = _ACCOUNT_OF.get(cause.cause) if changes == "what the cause names" else None
        if account is not None:
            expected.append(ExpectedChange(place, account=account))
        elif (check := _check(changes, cause, known)) is not None:
            checks[place] = check
    with_it = attempt.candidate_with if known.slower == "candidate" else attempt.baseline_with
    for source in dict.fromkeys(check.source for check in checks.values()):
        run = _observed_run(observe(plan, EvidenceRun(source, with_it, 1)))
        if run is None:
            continue
        for place, check in checks.items():
            if check.source == source:
                sentence = _unchanged(check, known, run)
                if sentence is not None:
                    expected.append(ExpectedChange(place, unchanged=sentence))
    return tuple(expected)


def reaches_any(
    plan: Plan, attempt: PlannedIntervention, expected: Iterable[ExpectedChange]
) -> bool:
    """Return whether some cause of an attempt may be reached, or the attempt has no cause."""
    missed = {change.cause for change in expected if change.unchanged is not None}
    fitting = {
        place
        for place, cause in enumerate(experiment_of(plan).causes)
        if cause.cause in attempt.causes
    }
    return not fitting or not fitting <= missed


def unchanged_account(
    name: str, attempt: PlannedIntervention, blocks: Iterable[tuple[Trial, ...]], slower: Side
) -> str | None:
    """Return the sentence that an account stayed as it was in the blocks that tried an attempt.

    ``None`` if it fell, if the slower condition has no more of it, or if it is unknown.
    """
    places = (attempt.candidate_without, attempt.baseline_without, attempt.candidate_with)
    if slower == "baseline":
        places = (attempt.baseline_without, attempt.candidate_without, attempt.baseline_with)
    account, event = ACCOUNTS[name]
    tried = [block for block in blocks if any(trial.condition == places[2] for trial in block)]
    accounts = [(trial.condition, account(trial.accounting)) for block in tried for trial in block]
    values = [
        [value for condition, value in accounts if condition == place and value is not None]
        for place in places
    ]
    if not all(values):
        return None
    before, faster, after = map(median, values)
    return None if _has_fallen(before, faster, after) else _often(event, before, after)


def _check(changes: Changes, cause: Explanation, known: KnownEvidence) -> Check | None:
    """Return what an observed run must show for one cause; ``None`` if nothing that is known."""
    syscall, file = cause.evidence.get("syscall"), cause.evidence.get("file")
    function = cause.evidence.get("function")
    match changes, cause.cause:
        case "threads", _:
            return Check("system_calls", lambda run: float(run.threads), _same_threads)
        case "CPUs", _:
            return Check("system_calls", lambda run: _count(run, _CHOOSES_CPUS), _chosen_cpus)
        case "the file", _ if isinstance(file, str) and is_named(file):
            return _fewer_calls(lambda run: _writes(run, file), f"{file} was written to")
        case "what the cause names", name if name in _CALLS and isinstance(syscall, str):
            return _fewer_calls(lambda run: _count(run, syscall), f"{syscall}(2) was called")
        case "what the cause names", "more_allocations":
            return _allocator(known)
        case "what the cause names", "wrong_blas_kernel" if isinstance(function, str):
            return _lasting(lambda called: called.name == function, f"{function}() ran")
    return None


def _fewer_calls(value: Callable[[Any], float], event: str) -> Check:
    """Return the check that a count of system calls falls."""

    def unchanged(before: float, faster: float, after: float) -> str | None:
        return None if _has_fallen(before, faster, after) else _often(event, before, after)

    return Check("system_calls", value, unchanged)


def _lasting(is_one: Callable[[Function], bool], event: str) -> Check:
    """Return the check that functions take less of a profile."""

    def unchanged(before: float, faster: float, after: float) -> str | None:
        if before < MIN_FUNCTION_S or _has_fallen(before, faster, after):
            return None
        if after >= _AS_BEFORE * before:
            # A profile is of samples: more of them means nothing.
            return f"{event} for as long as before: {after:.2g} s"
        return f"{event} for {after:.2g} s, {before:.2g} s before"

    return Check("profile", lambda run: sum(_seconds(run, is_one)), unchanged)


def _allocator(known: KnownEvidence) -> Check | None:
    """Return the check that another allocator runs than the one that ran before."""
    runs = known.evidence.profile.of(known.slower)
    modules = {
        place.functions[-1].module
        for run in runs
        for place in places_of(run.stacks)
        if place.functions and is_inside_allocator(place.functions[-1])
    }
    if not modules:
        return None
    check = _lasting(
        lambda function: function.module in modules and is_inside_allocator(function),
        f"the allocator in {' and '.join(sorted(modules))} ran",
    )
    # Both conditions have had that allocator: all of it must go, not what one has more.
    return Check(
        check.source, check.value, lambda before, _, after: check.unchanged(before, 0.0, after)
    )


def _unchanged(check: Check, known: KnownEvidence, with_it: Any) -> str | None:
    runs = known.evidence.by_source()[check.source]
    if not runs.has_both:
        return None
    faster: Side = "baseline" if known.slower == "candidate" else "candidate"
    before, less = (fmean(map(check.value, runs.of(side))) for side in (known.slower, faster))
    return check.unchanged(before, less, check.value(with_it))


def _observed_run(observation: Observation | None) -> Any:
    if observation is None or observation.document is None:
        return None
    return msgspec.json.decode(observation.document, type=SOURCES[observation.source].document)


def _has_fallen(before: float, faster: float, after: float) -> bool:
    """Return whether enough of the surplus is gone; also if there is no surplus to lose."""
    surplus = before - faster
    return surplus <= 0 or before - after >= REACHED * surplus


def _same_threads(before: float, faster: float, after: float) -> str | None:
    if round(before) != round(after):
        return None
    count = round(after)
    return f"as many threads ran as before: {count:,}"


def _chosen_cpus(before: float, faster: float, after: float) -> str | None:
    if after == 0:
        return None
    return f"the program chose its CPUs itself: {_CHOOSES_CPUS}(2) was called {_times(after)}"


def _often(event: str, before: float, after: float) -> str:
    if _AS_BEFORE * before <= after <= before / _AS_BEFORE:
        return f"{event} as often as before: {_times(after)}"
    return f"{event} {_times(after)}, {_times(before)} before"


def _times(count: float) -> str:
    return "once" if round(count) == 1 else f"{count:,.0f} times"


def _count(run: SystemCalls, name: str) -> float:
    return float(sum(call.count for call in run.calls if call.name == name))


def _writes(run: SystemCalls, file: str) -> float:
    return float(sum(written.writes for written in run.files if written.name == file))


def _seconds(run: SampledStacks, is_one: Callable[[Function], bool]) -> Iterator[float]:
    for place in places_of(run.stacks):
        if place.entry is None and place.functions and is_one(place.functions[-1]):
            yield place.weight
