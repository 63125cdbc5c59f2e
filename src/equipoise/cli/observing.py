"""Gathering evidence for the command line: what is missing is observed, with a live bar."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from equipoise.cli.wanted import Wanted
from equipoise.cli.work_bar import work_bar
from equipoise.ledger import Ledger
from equipoise.model.record import RunRecord
from equipoise.model.safe_text import visible
from equipoise.why.evidence.collect import (
    EvidenceRequest,
    EvidenceRun,
    missing_runs,
    observe,
)
from equipoise.why.gap import Gap, largest_gap, nothing_to_explain

LONG_S = 120.0
"""What takes so long is worth a line where nobody sees a bar."""


def with_evidence_of_largest(record: RunRecord, ledger: Ledger, wanted: Wanted) -> RunRecord:
    """The record of a campaign that has just ended, with its largest gap observed.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted it: it was said how to go on.
    """
    gap = largest_gap(record)
    if gap is None:
        _say("there is nothing to explain: nothing was compared")
        return record
    if not gap.is_called:
        _say(visible(nothing_to_explain(gap)))
        return record
    return with_evidence(record, gap, EvidenceRequest(), ledger, wanted)


def with_evidence(
    record: RunRecord, gap: Gap, request: EvidenceRequest, ledger: Ledger, wanted: Wanted
) -> RunRecord:
    """The record with everything observed that was asked for.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted it: it was said how to go on.
    """
    runs = missing_runs(record, gap, request)
    if runs:
        _observe_with_a_bar(record, gap, runs, ledger, wanted)
    return ledger.read_run(record.id)


def _observe_with_a_bar(
    record: RunRecord, gap: Gap, runs: Sequence[EvidenceRun], ledger: Ledger, wanted: Wanted
) -> None:
    if not wanted.quiet and (sys.stderr.isatty() or len(runs) * gap.longest_s >= LONG_S):
        _say(_what_it_does(gap, runs))
    try:
        with work_bar("observing", quiet=wanted.quiet, color=wanted.color) as tell:
            if tell is not None:
                tell(0, len(runs))
            observe(
                record,
                gap,
                runs,
                ledger,
                on_progress=lambda made: None if tell is None else tell(made, len(runs)),
            )
    except KeyboardInterrupt:
        _say(
            f"interrupted; what was observed is kept\n  hint: go on with equipoise why {record.id}"
        )
        raise


def _what_it_does(gap: Gap, runs: Sequence[EvidenceRun]) -> str:
    one = gap.comparison
    sources = ", ".join(dict.fromkeys(run.source for run in runs))
    repetitions = len({run.repetition for run in runs})
    times = "once" if repetitions == 1 else f"{repetitions} times"
    return (
        f"observing {visible(one.candidate)} and {visible(one.baseline)} {times} under each of "
        f"{sources}: {len(runs)} runs"
    )


def _say(words: str) -> None:
    print(f"equipoise: {words}", file=sys.stderr, flush=True)
