"""A campaign on the command line: hold the lock, measure, analyse, show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from equipoise.campaign.conduct import Interrupted, measurement_lock
from equipoise.campaign.progress import ProgressListener
from equipoise.cli.leftovers import report_briefly
from equipoise.cli.load_result import FOLDER, load_result, reported, write_figures
from equipoise.cli.output_options import OutputOptions, show
from equipoise.cli.progress import progress_for
from equipoise.ledger import Ledger, open_for_writing
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.measurement_lock import LockOwner
from equipoise.model.errors import EXIT_CONDITION_FAILED, EXIT_DONE
from equipoise.model.record import RunRecord, RunSummary
from equipoise.model.result import ResultDocument


@contextmanager
def measuring(
    output: OutputOptions,
    *,
    about_s: float | None = None,
    after_interrupt: str = "equipoise resume {run}",
) -> Iterator[tuple[Ledger, ProgressListener]]:
    """Hold the measurement lock of this host, with the ledger open for writing.

    Parameters
    ----------
    about_s
        Seconds that a block takes, if they are known beforehand.
    after_interrupt
        Hint after an interruption; ``{run}`` stands for the run id.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted the campaign; a message has said so.
    """
    listener = progress_for(quiet=output.quiet, color=output.color, about_s=about_s)
    with (
        measurement_lock(say_who_measures, allow_concurrent=output.allow_concurrent),
        open_for_writing(output.ledger, durable=output.durable) as ledger,
    ):
        # Processes of a killed campaign would run beside this one and its builds.
        clearance = clear_leftovers()
        if not output.quiet:
            report_briefly(clearance)
        try:
            yield ledger, listener
        except Interrupted as interruption:
            print(
                f"equipoise: interrupted; nothing that was measured is lost\n"
                f"  hint: {after_interrupt.format(run=interruption.run_id)}",
                file=sys.stderr,
            )
            raise KeyboardInterrupt from None


class CampaignResult(Struct, frozen=True):
    """Result of a campaign that ran to its stop."""

    record: RunRecord
    """The record as reports show it: without hidden values, unless they were asked for."""
    document: ResultDocument
    earlier: list[RunSummary]
    """Campaigns of the same commands."""


def analyse(run_id: str, ledger: Ledger, output: OutputOptions) -> CampaignResult:
    """Return the result of a campaign; with ``--why``, explain its largest gap first."""
    from equipoise.why.campaigns import latest_experiment

    record = ledger.read_run(run_id)
    if output.why:
        from equipoise.cli.explaining import explain_largest_gap

        record = explain_largest_gap(record, ledger, output)
    experiment = latest_experiment(record, ledger)
    earlier = [run for run in ledger.same_commands(record.plan) if run.id != run_id]
    record, experiment = reported(record, experiment, show_env=output.show_env)
    return CampaignResult(record, load_result(record, output, experiment), earlier)


def show_result(result: CampaignResult, output: OutputOptions) -> int:
    """Write and print the result of a campaign; return the exit status."""
    show(result.document, result.record, result.earlier, output)
    folder = output.figures or output.ledger.parent / FOLDER / result.record.id
    write_figures(result.document, folder, quiet=not output.has_screen, color=output.color)
    return exit_status(result)


def exit_status(result: CampaignResult) -> int:
    """Return 3 if a trial timed out and a verdict is missing, else 0."""
    undecided = any(row.verdict == "undecided" for row in result.document.comparisons)
    timed_out = [trial for trial in result.record.trials if trial.timed_out]
    if not (undecided and timed_out):
        return EXIT_DONE
    name = result.record.plan.conditions[timed_out[0].condition].name
    print(
        f"equipoise: no verdict: {name} {timed_out[0].failure}\n"
        "  hint: raise --timeout, or --blocks and --budget so that a timeout can tell",
        file=sys.stderr,
    )
    return EXIT_CONDITION_FAILED


def say_who_measures(owner: LockOwner) -> None:
    """Print on stderr which campaign this one waits for."""
    print(
        f"equipoise: another campaign runs on this host ({owner.describe()}): waiting for its end\n"
        "  hint: Ctrl-C, or --allow-concurrent to measure all the same",
        file=sys.stderr,
        flush=True,
    )
