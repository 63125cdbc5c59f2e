"""All that differs between two conditions, put together from what each source saw."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from equipoise.model.plan import Condition
from equipoise.model.record import Trial
from equipoise.why.differences.allocations import allocations_change
from equipoise.why.differences.instructions import instructions_change
from equipoise.why.differences.page_faults import page_faults_change
from equipoise.why.differences.profile import profile_change
from equipoise.why.differences.result import Difference
from equipoise.why.differences.settings import settings
from equipoise.why.differences.system_calls import system_calls_change
from equipoise.why.differences.trials import trials_change
from equipoise.why.differences.waits import waits_change
from equipoise.why.evidence.evidence_set import Gathered, Runs

_DIGITS = re.compile(r"\d+")


def difference(
    trials: Runs[Trial], gathered: Gathered, conditions: tuple[Condition, Condition]
) -> Difference:
    """What differs between two conditions.

    Parameters
    ----------
    trials
        The analysed trials of the campaign; those of one block are a pair.
    gathered
        What the instrumented runs saw, any number of each.
    conditions
        The baseline and the candidate.

    Raises
    ------
    UnusableInput
        There is no block in which the wall time of both conditions is known.
    """
    own = trials_change(trials)
    profile = profile_change(gathered.profile, own.slower, own.split)
    calls = system_calls_change(gathered.system_calls, own.slower)
    unseen = _unseen(gathered)
    unseen["profile"] = (*unseen.get("profile", ()), *profile.unseen)
    return Difference(
        slower=own.slower,
        gap=own.gap,
        split=own.split,
        accounts=own.accounts,
        on_processor=profile.on_processor,
        doors=profile.doors,
        functions=profile.functions,
        reached=profile.reached,
        doors_by_function=profile.doors_by_function,
        waits=waits_change(gathered.waits, own.slower),
        calls=calls.calls,
        files=calls.files,
        locks=calls.locks,
        faults=page_faults_change(gathered.page_faults, own.slower),
        allocations=allocations_change(gathered.allocations, own.slower),
        instructions=instructions_change(gathered.instructions, own.slower),
        processes=calls.processes,
        threads=calls.threads,
        programs=calls.programs,
        settings=settings(conditions),
        unseen={source: words for source, words in {**own.unseen, **unseen}.items() if words},
    )


def _unseen(gathered: Gathered) -> dict[str, tuple[str, ...]]:
    """What each source said that it missed, and why runs of it gave nothing."""
    said: Mapping[str, Iterator[str]] = {
        "system_calls": _said(gathered.system_calls.map(lambda run: run.unseen)),
        "profile": _said(gathered.profile.map(lambda run: run.unseen)),
        "page_faults": _said(gathered.page_faults.map(lambda run: run.unseen)),
        "waits": _said(gathered.waits.map(lambda run: run.unseen)),
        "allocations": _said(gathered.allocations.map(lambda run: run.unseen)),
        "instructions": _said(gathered.instructions.map(lambda run: run.unseen)),
    }
    sources = dict.fromkeys((*said, *gathered.failures))
    return {
        source: _once((*gathered.failures.get(source, ()), *said.get(source, ())))
        for source in sources
    }


def _said(runs: Runs[tuple[str, ...]]) -> Iterator[str]:
    return (words for run in (*runs.baseline, *runs.candidate) for words in run)


def _once(said: tuple[str, ...]) -> tuple[str, ...]:
    """Each remark once: the runs of a source differ in the numbers in them only."""
    first: dict[str, str] = {}
    for words in said:
        first.setdefault(_DIGITS.sub("0", words), words)
    return tuple(first.values())
