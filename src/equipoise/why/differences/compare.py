"""Compare two conditions: put together what differs in what each source saw."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

from msgspec.structs import replace

from equipoise.model.plan import Condition
from equipoise.model.record import Trial
from equipoise.why.differences.allocations import allocations_change
from equipoise.why.differences.changes import Difference, changes, counted
from equipoise.why.differences.settings import settings
from equipoise.why.differences.stacks import page_faults_change, waits_change, with_profile
from equipoise.why.differences.system_calls import with_system_calls
from equipoise.why.differences.trials import trials_difference
from equipoise.why.evidence.sources import EvidenceSet, Runs

_DIGITS = re.compile(r"\d+")


def difference_between(
    trials: Runs[Trial], evidence: EvidenceSet, conditions: tuple[Condition, Condition]
) -> Difference:
    """Return what differs between two conditions, the baseline and the candidate.

    Of the campaign's analysed trials, those of one block are a pair. The evidence is of any number
    of instrumented runs.

    Raises
    ------
    UnusableInput
        There is no block in which the wall time of both conditions is known.
    """
    of_trials = trials_difference(trials)
    slower = of_trials.slower
    unseen = {
        source: remarks
        for source, runs in evidence.by_source().items()
        if (remarks := _unseen(evidence.failures.get(source, ()), runs))
    }
    difference = replace(
        of_trials,
        waits=waits_change(evidence.waits, slower),
        faults=page_faults_change(evidence.page_faults, slower),
        allocations=allocations_change(evidence.allocations, slower),
        instructions=changes(evidence.instructions.map(lambda run: run.functions), slower, counted),
        settings=settings(conditions),
        unseen={**of_trials.unseen, **unseen},
    )
    return with_system_calls(with_profile(difference, evidence.profile), evidence.system_calls)


def _unseen(failures: tuple[str, ...], runs: Runs[Any]) -> tuple[str, ...]:
    """Return why runs of a source gave nothing, and what they could not see, each once."""
    first: dict[str, str] = {}
    for remark in chain(failures, *(run.unseen for run in runs.every)):
        # The runs of a source differ only in the numbers in their remarks.
        first.setdefault(_DIGITS.sub("0", remark), remark)
    return tuple(first.values())
