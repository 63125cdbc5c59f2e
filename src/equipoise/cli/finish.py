"""Conducting a campaign for the command line, and showing what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from equipoise.campaign import conduct
from equipoise.campaign.progress import ProgressListener
from equipoise.cli.leftovers import report_briefly
from equipoise.cli.progress import watcher_for
from equipoise.cli.reported import reported
from equipoise.cli.shown import shown_document
from equipoise.cli.study_findings import FOLDER, write_figures
from equipoise.cli.wanted import Wanted, show
from equipoise.ledger import Ledger, open_for_writing
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.measurement_lock import LockOwner
from equipoise.model.errors import (
    EXIT_CONDITION_FAILED,
    EXIT_DONE,
    EXIT_INTERRUPTED,
)
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning, RunRecord, RunSummary
from equipoise.model.result import ResultDocument


def conduct_and_show(plan: Plan, wanted: Wanted, notices: Sequence[CampaignWarning] = ()) -> int:
    """Run a new campaign to its stop and show its result; return the exit status."""

    def campaign(ledger: conduct.CampaignStore, watcher: ProgressListener) -> str:
        return conduct.start(plan, ledger, watcher, warnings=notices)

    return show_after(campaign, wanted)


@dataclass(frozen=True, slots=True)
class Conducted:
    """A campaign that went to its stop."""

    record: RunRecord
    """As it is reported."""
    document: ResultDocument
    earlier: list[RunSummary]
    """Campaigns of the same commands."""


def show_after(
    campaign: Callable[[conduct.CampaignStore, ProgressListener], str],
    wanted: Wanted,
    *,
    about_s: float | None = None,
) -> int:
    """Let a campaign go to its stop and show its result; return the exit status.

    Parameters
    ----------
    about_s
        What a block of it takes, as far as that is known beforehand.
    """
    done = conducted(campaign, wanted, about_s=about_s)
    if done is None:
        return EXIT_INTERRUPTED
    record, document = done.record, done.document
    show(document, record, done.earlier, wanted)
    folder = wanted.figures or wanted.ledger.parent / FOLDER / record.id
    silent = wanted.quiet or wanted.json_file == "-"
    write_figures(document, folder, quiet=silent, color=wanted.color)
    return exit_status(record, document)


def conducted(
    campaign: Callable[[conduct.CampaignStore, ProgressListener], str],
    wanted: Wanted,
    *,
    about_s: float | None = None,
    going_on: str = "equipoise resume {run}",
) -> Conducted | None:
    """Let a campaign go to its stop; ``None`` if it was interrupted, which is said.

    Parameters
    ----------
    going_on
        What to do after an interruption.
    """
    watcher = watcher_for(quiet=wanted.quiet, color=wanted.color, about_s=about_s)
    with (
        conduct.measurement_lock(say_whom_it_waits_for, allow_concurrent=wanted.allow_concurrent),
        open_for_writing(wanted.ledger, durable=wanted.durable) as ledger,
    ):
        # What still runs of a killed campaign would run beside this one and its builds.
        clearance = clear_leftovers()
        if not wanted.quiet:
            report_briefly(clearance)
        try:
            run_id = campaign(ledger, watcher)
        except conduct.Interrupted as interruption:
            print(
                f"equipoise: interrupted; nothing that was measured is lost\n"
                f"  hint: {going_on.format(run=interruption.run_id)}",
                file=sys.stderr,
            )
            return None
        record = ledger.read_run(run_id)
        if wanted.why:
            record = _explained(record, ledger, wanted)
        from equipoise.why.campaigns import latest_experiment

        experiment = latest_experiment(record, ledger)
        earlier = [one for one in ledger.same_commands(record.plan) if one.id != run_id]
    record, experiment = reported(record, experiment, show_env=wanted.show_env)
    return Conducted(record, shown_document(record, wanted, experiment), earlier)


def _explained(record: RunRecord, ledger: Ledger, wanted: Wanted) -> RunRecord:
    """Observe the largest gap of a campaign, and test its causes if that is wanted."""
    from equipoise.cli.experiment import with_experiment_on_largest
    from equipoise.cli.observing import with_evidence_of_largest

    record = with_evidence_of_largest(record, ledger, wanted)
    if wanted.test:
        with_experiment_on_largest(record, ledger, wanted)
    return record


def say_whom_it_waits_for(owner: LockOwner) -> None:
    """Say on stderr which campaign this one waits for."""
    print(
        f"equipoise: another campaign runs on this host ({owner.describe()}): waiting for its end\n"
        "  hint: Ctrl-C, or --allow-concurrent to measure all the same",
        file=sys.stderr,
        flush=True,
    )


def exit_status(record: RunRecord, document: ResultDocument) -> int:
    """3 if a trial timed out and a verdict is missing, else 0."""
    undecided = any(one.verdict == "undecided" for one in document.comparisons)
    timed_out = [trial for trial in record.trials if trial.timed_out]
    if not (undecided and timed_out):
        return EXIT_DONE
    name = record.plan.conditions[timed_out[0].condition].name
    print(
        f"equipoise: no verdict: {name} {timed_out[0].failure}\n"
        "  hint: raise --timeout, or --blocks and --budget so that a timeout can tell",
        file=sys.stderr,
    )
    return EXIT_CONDITION_FAILED
