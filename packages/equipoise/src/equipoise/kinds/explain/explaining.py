"""The two halves of `equipoise why`: observe a gap, then test its causes by interventions."""

from __future__ import annotations

from equipoise.campaign import conduct
from equipoise.cli.options import OutputOptions
from equipoise.cli.progress import progress_for
from equipoise.cli.streams import is_watched, say
from equipoise.cli.work_bars import work_bar
from equipoise.design.coin import fresh_seed
from equipoise.kinds.explain.plan import ExperimentRequest, NothingToTry, OpenGap, plan_experiment
from equipoise.kinds.explain.reach import KnownEvidence
from equipoise.kinds.explain.terms import experiment_of
from equipoise.ledger import Ledger
from equipoise.measure.installation import host_site
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import RunRecord
from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.evidence.collect import EvidenceRequest, missing_runs, observe
from equipoise.why.explanation import evidence_of_gap
from equipoise.why.gap import Gap, largest_gap, nothing_to_explain
from equipoise.why.kind import why_kind

LONG_S = 120.0
"""Seconds from which on observing gets a line where nobody sees a bar."""
LEAST_BUDGET_S = 120.0
"""Least default budget of a campaign of interventions; a larger one of the explained campaign
is its default."""


def explain_largest_gap(record: RunRecord, ledger: Ledger, output: OutputOptions) -> None:
    """Observe the largest gap of a campaign, and test its causes unless ``--no-test`` is given.

    Raise `KeyboardInterrupt` if the user interrupted it; a message has said how to go on.
    """
    gap = largest_gap(record)
    if gap is None:
        say(f"there is nothing to explain: {why_kind(record.plan.terms).nothing_to_explain}")
    elif not gap.is_called:
        say(nothing_to_explain(gap))
    else:
        record = observe_gap(record, gap, EvidenceRequest(), ledger, output)
        if output.test:
            try_interventions(record, gap, default_experiment(record.plan), ledger, output)


def default_experiment(explained: Plan) -> ExperimentRequest:
    """Return what is tried without options: all that fits the causes."""
    budget_s = max(LEAST_BUDGET_S, explained.stopping.budget_s)
    return ExperimentRequest(Stopping(budget_s=budget_s), explained.judgement.alpha, fresh_seed())


def observe_gap(
    record: RunRecord, gap: Gap, request: EvidenceRequest, ledger: Ledger, output: OutputOptions
) -> RunRecord:
    """Make the runs that the request asks for and the ledger lacks; return the campaign anew.

    Raise `KeyboardInterrupt` if the user interrupted it; a message has said how to go on.
    """
    runs = missing_runs(record, gap, request)
    if not runs:
        return record
    if not output.quiet and (is_watched() or len(runs) * gap.longest_s >= LONG_S):
        both = f"{gap.comparison.candidate} and {gap.comparison.baseline}"
        sources = ", ".join(dict.fromkeys(run.source for run in runs))
        repetitions = len({run.repetition for run in runs})
        times = "once" if repetitions == 1 else f"{repetitions} times"
        say(f"observing {both} {times} under each of {sources}: {len(runs)} runs")
    try:
        with work_bar("observing", quiet=output.quiet, color=output.color) as show_progress:

            def on_progress(made: int) -> None:
                if show_progress is not None:
                    show_progress(made, len(runs))

            on_progress(0)
            observe(record, gap, runs, ledger, on_progress=on_progress)
    except KeyboardInterrupt:
        say("interrupted; what was observed is kept", f"go on with equipoise why {record.id}")
        raise
    return ledger.read_run(record.id)


def try_interventions(
    record: RunRecord, gap: Gap, request: ExperimentRequest, ledger: Ledger, output: OutputOptions
) -> None:
    """Run the campaign that tests the causes of a gap; without anything to try, say so.

    Raise `Interrupted` if the user interrupted the campaign. Raise `ConditionFailed` if one of the
    two conditions failed by itself.
    """
    observed = evidence_of_gap(record, gap)
    causes = suggested_causes(observed.difference)
    known = KnownEvidence(observed.evidence, observed.difference.slower)
    open_gap = OpenGap(record, gap.contrast, causes, known, gap.longest_s, gap.smallest_ratio)
    try:
        plan = plan_experiment(open_gap, request, host_site())
    except NothingToTry as error:
        say(f"nothing is tested: {error.what}", error.hint)
        return
    if not output.quiet:
        reaching = [one.intervention for one in experiment_of(plan).attempts if one.is_reachable]
        if reaching:
            say(f"testing by interventions on both: {', '.join(reaching)}")
        for attempt in experiment_of(plan).attempts:
            if not attempt.is_reachable:
                unchanged = next(one.unchanged for one in attempt.expected if one.unchanged)
                say(f"not tested: {attempt.intervention} cannot reach the cause ({unchanged})")
    listener = progress_for(quiet=output.quiet, color=output.color)
    conduct.start(plan, ledger, listener)
