"""The two halves of `equipoise why`: observe a gap, then test its causes by interventions."""

from __future__ import annotations

import sys

from equipoise.campaign import conduct
from equipoise.cli.output_options import OutputOptions
from equipoise.cli.progress import progress_for, work_bar
from equipoise.cli.why_options import default_experiment
from equipoise.ledger import Ledger
from equipoise.measure.installation import host_site
from equipoise.model.record import RunRecord
from equipoise.model.safe_text import visible
from equipoise.why.campaigns import judge_of
from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.evidence.collect import EvidenceRequest, missing_runs, observe
from equipoise.why.experiment.plan import (
    ExperimentRequest,
    NothingToTry,
    OpenGap,
    plan_experiment,
)
from equipoise.why.explanation import evidence_of_gap
from equipoise.why.gap import Gap, largest_gap, nothing_to_explain

LONG_S = 120.0
"""Seconds from which on observing gets a line where nobody sees a bar."""


def explain_largest_gap(record: RunRecord, ledger: Ledger, output: OutputOptions) -> RunRecord:
    """Observe the largest gap of a campaign, and test its causes unless ``--no-test`` is given.

    Returns
    -------
    The campaign with its observations.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted it; a message has said how to go on.
    """
    gap = largest_gap(record)
    if gap is None:
        _say("there is nothing to explain: nothing was compared")
        return record
    if not gap.is_called:
        _say(nothing_to_explain(gap))
        return record
    record = observe_gap(record, gap, EvidenceRequest(), ledger, output)
    if output.test:
        try_interventions(record, gap, default_experiment(record.plan), ledger, output)
    return record


def observe_gap(
    record: RunRecord, gap: Gap, request: EvidenceRequest, ledger: Ledger, output: OutputOptions
) -> RunRecord:
    """Make the runs that the request asks for and the ledger lacks; return the campaign anew.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted it; a message has said how to go on.
    """
    runs = missing_runs(record, gap, request)
    if not runs:
        return record
    if not output.quiet and (sys.stderr.isatty() or len(runs) * gap.longest_s >= LONG_S):
        both = f"{gap.comparison.candidate} and {gap.comparison.baseline}"
        sources = ", ".join(dict.fromkeys(run.source for run in runs))
        repetitions = len({run.repetition for run in runs})
        times = "once" if repetitions == 1 else f"{repetitions} times"
        _say(f"observing {both} {times} under each of {sources}: {len(runs)} runs")
    try:
        with work_bar("observing", quiet=output.quiet, color=output.color) as show_progress:

            def on_progress(made: int) -> None:
                if show_progress is not None:
                    show_progress(made, len(runs))

            on_progress(0)
            observe(record, gap, runs, ledger, on_progress=on_progress)
    except KeyboardInterrupt:
        _say("interrupted; what was observed is kept", f"go on with equipoise why {record.id}")
        raise
    return ledger.read_run(record.id)


def try_interventions(
    record: RunRecord, gap: Gap, request: ExperimentRequest, ledger: Ledger, output: OutputOptions
) -> None:
    """Run the campaign that tests the causes of a gap; without anything to try, say so.

    Raises
    ------
    Interrupted
        The user interrupted the campaign.
    ConditionFailed
        One of the two conditions failed by itself.
    """
    causes = suggested_causes(evidence_of_gap(record, gap).difference)
    try:
        plan = plan_experiment(OpenGap(record, gap.contrast, causes), request, host_site())
    except NothingToTry as error:
        _say(f"nothing is tested: {error.what}", error.hint)
        return
    assert plan.explains is not None
    if not output.quiet:
        names = ", ".join(one.intervention for one in plan.explains.attempts)
        _say(f"testing by interventions on both: {names}")
    listener = progress_for(quiet=output.quiet, color=output.color)
    conduct.start(plan, ledger, listener, judge_of=judge_of)


def say_it_was_tested(experiment: RunRecord) -> None:
    """Say which campaign the fractions are from, and how to have more."""
    _say(
        f"tested already, by campaign {experiment.id}",
        f"--again tests anew; equipoise resume {experiment.id} --min-blocks 40 goes on until "
        "every interval is narrower",
    )


def _say(message: str, hint: str | None = None) -> None:
    suffix = "" if hint is None else f"\n  hint: {visible(hint)}"
    print(f"equipoise: {visible(message)}{suffix}", file=sys.stderr, flush=True)
