"""A campaign on the command line: hold the lock, measure, analyse, show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from equipoise.campaign.conduct import Interrupted, measurement_lock
from equipoise.campaign.progress import ProgressListener
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.progress import progress_for
from equipoise.cli.results import CampaignResult, read_result, show
from equipoise.cli.streams import say
from equipoise.cli.writing import save_figures
from equipoise.ledger import Ledger, open_for_writing
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.measurement_lock import LockOwner
from equipoise.model.errors import EXIT_CONDITION_FAILED, EXIT_DONE, UnusableInput
from equipoise.model.kinds import load_part
from equipoise.model.plan import COMPARE_STUDY, Plan
from equipoise.model.record import RunRecord

if TYPE_CHECKING:
    from equipoise.cluster.connection import ClusterAccess

FOLDER = "figures"
"""Folder next to the ledger, with a folder for each run."""


@contextmanager
def measuring(
    output: OutputOptions,
    *,
    author_block_s: float | None = None,
    after_interrupt: str = "equipoise resume {run}",
) -> Iterator[tuple[Ledger, ProgressListener]]:
    """Hold the measurement lock of this host, with the ledger open for writing.

    Raise `KeyboardInterrupt` if the user interrupted the campaign, after a message.

    Parameters
    ----------
    author_block_s
        Seconds that a block takes, if they are known beforehand.
    after_interrupt
        Hint after an interruption; ``{run}`` is replaced by the run id.
    """
    listener = progress_for(quiet=output.quiet, color=output.color, author_block_s=author_block_s)
    with (
        measurement_lock(say_who_measures, allow_concurrent=output.allow_concurrent),
        open_for_writing(output.ledger, durable=output.durable, host=output.host) as ledger,
    ):
        # Processes of a killed campaign would disturb this one and its builds.
        clear_killed_campaigns(output)
        try:
            yield ledger, listener
        except Interrupted as interruption:
            say(
                "interrupted; nothing that was measured is lost",
                after_interrupt.format(run=interruption.run_id),
            )
            raise KeyboardInterrupt from None


def measure_on_hosts(
    plan: Plan,
    access: ClusterAccess,
    hosts: HostOptions,
    output: OutputOptions,
    **more: Any,
) -> int:
    """Measure a plan on every host of a cluster, by the kind of campaign that does so.

    Raise `UnusableInput` if no such kind is installed.
    """
    measure = load_part("on_hosts", "on the hosts of a cluster", "leave --cluster out")
    status = measure(plan, access, hosts, output, **more)
    assert isinstance(status, int)
    return status


def say_who_measures(owner: LockOwner) -> None:
    """Print on stderr which campaign this one waits for."""
    say(
        f"another campaign runs on this host ({owner.describe()}): waiting for its end",
        "Ctrl-C, or --allow-concurrent to measure all the same",
    )


def clear_killed_campaigns(output: OutputOptions) -> None:
    """Clear away leftovers; name the removed folders, and the first that was left alone."""
    clearance = clear_leftovers()
    if output.quiet:
        return
    for removed in clearance.cleared:
        say(removed.describe())
    if clearance.leftovers:
        first, further = clearance.leftovers[0], len(clearance.leftovers) - 1
        more = f", and {further} more" if further else ""
        say(f"{first.describe()}{more}; see `equipoise doctor`")


def analyse(run_id: str, ledger: Ledger, output: OutputOptions) -> CampaignResult:
    """Return the result of a campaign; with ``--why``, explain its largest gap first."""
    if output.why:
        explain_gap(ledger.read_run(run_id), ledger, output)
    return read_result(run_id, ledger, output)


def explain_gap(record: RunRecord, ledger: Ledger, output: OutputOptions) -> None:
    """Explain the largest gap of a campaign, by the kind of campaign that tests causes.

    Raise `UnusableInput` if no such kind is installed.
    """
    load_part("explain_gap", "that test causes", "leave --why out")(record, ledger, output)


def show_result(result: CampaignResult, output: OutputOptions) -> int:
    """Write and print the result of a campaign; return the exit status."""
    show(result, output)
    write_figures(result, output)
    return exit_status(result)


def write_figures(result: CampaignResult, output: OutputOptions) -> None:
    """Write a built-in study's own figures, and those of the iterations that it reported.

    Raise `UnusableInput` if the folder cannot be made or written to.
    """
    document = result.document
    if document.run.study == COMPARE_STUDY:
        return
    from equipoise.shared.pictures import require_figures
    from equipoise.studies.catalogue import analysis_of

    study = analysis_of(document.run.study)
    if study is None:
        return
    try:
        require_figures()
    except UnusableInput as missing:
        # Not worth losing a result for: --figures has refused to begin.
        say(f"the study's own figures are left out: {missing.what}", missing.hint)
        return
    from equipoise.figures.gallery import iteration_figures
    from equipoise.report.document import Paragraph
    from equipoise.report.renderers.terminal import print_parts

    folder = output.figures or output.ledger.parent / FOLDER / document.run.id
    files = save_figures([*study.figures(document), *iteration_figures(document)], folder)
    if files and output.has_screen:
        print_parts([Paragraph(f"figure: {file}") for file in files], color=output.color)


def exit_status(result: CampaignResult) -> int:
    """Return 3 if a trial timed out and a verdict is missing, else 0."""
    undecided = any(row.verdict == "undecided" for row in result.document.comparisons)
    timed_out = [trial for trial in result.record.trials if trial.timed_out]
    if not (undecided and timed_out):
        return EXIT_DONE
    name = result.record.plan.conditions[timed_out[0].condition].name
    say(
        f"no verdict: {name} {timed_out[0].failure}",
        "raise --timeout, or --blocks and --budget so that a timeout can tell",
    )
    return EXIT_CONDITION_FAILED
