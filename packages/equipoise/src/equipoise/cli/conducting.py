"""Steps that all commands with a campaign share: lock the host, measure, analyse and show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from equipoise.campaign.conduct import Interrupted, measurement_lock
from equipoise.campaign.progress import ProgressListener
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.progress import progress_for
from equipoise.cli.results import CampaignResult, read_result, write_and_print
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

FIGURES_FOLDER = "figures"
"""Folder next to the ledger, with a subfolder for each run."""


@contextmanager
def measuring(
    output: OutputOptions,
    *,
    author_block_s: float | None = None,
    interrupt_hint: str = "equipoise resume {run}",
) -> Iterator[tuple[Ledger, ProgressListener]]:
    """Hold the measurement lock of this host; yield the ledger, open for writing, and a listener.

    ``author_block_s`` is the time of one block on the machine of the study's author, if known. If
    the user interrupts the campaign, print ``interrupt_hint``, in which the run id replaces
    ``{run}``, and raise `KeyboardInterrupt`.
    """
    listener = progress_for(quiet=output.quiet, color=output.color, author_block_s=author_block_s)
    with (
        measurement_lock(say_who_measures, allow_concurrent=output.allow_concurrent),
        open_for_writing(output.ledger, durable=output.durable, host=output.host) as ledger,
    ):
        clear_killed_campaigns(output)
        try:
            yield ledger, listener
        except Interrupted as interruption:
            say(
                "interrupted; every finished trial is stored",
                interrupt_hint.format(run=interruption.run_id),
            )
            raise KeyboardInterrupt from None


def measure_on_hosts(
    plan: Plan, access: ClusterAccess, hosts: HostOptions, output: OutputOptions, **keywords: Any
) -> int:
    """Measure a plan on every host of a cluster; return the exit status.

    Raise `UnusableInput` if the kind of campaign `fleet` is not installed.
    """
    measure = load_part(
        "measure_on_hosts", purpose="on the hosts of a cluster", alternative="remove --cluster"
    )
    status = measure(plan, access, hosts, output, **keywords)
    assert isinstance(status, int)
    return status


def say_who_measures(owner: LockOwner) -> None:
    """Print the campaign that this campaign waits for."""
    say(
        f"another campaign runs on this host ({owner.describe()}): waiting for its end",
        "stop waiting with Ctrl-C, or add --allow-concurrent to measure now",
    )


def clear_killed_campaigns(output: OutputOptions) -> None:
    """Remove files and processes of killed campaigns; print which were removed and which kept."""
    clearance = clear_leftovers()
    if output.quiet:
        return
    for removed in clearance.removed_folders:
        say(removed.describe())
    if clearance.leftovers:
        first_leftover, other_count = clearance.leftovers[0], len(clearance.leftovers) - 1
        others_phrase = f", and {other_count} more" if other_count else ""
        say(f"{first_leftover.describe()}{others_phrase}; see `equipoise doctor`")


def analyse(run_id: str, ledger: Ledger, output: OutputOptions) -> CampaignResult:
    """Return the result of a campaign; with ``--why``, explain its largest gap first."""
    if output.why:
        explain_gap(ledger.read_run(run_id), ledger, output)
    return read_result(run_id, ledger, output)


def explain_gap(record: RunRecord, ledger: Ledger, output: OutputOptions) -> None:
    """Explain the largest gap of a campaign.

    Raise `UnusableInput` if the kind of campaign `explain` is not installed.
    """
    explain = load_part("explain_gap", purpose="that test causes", alternative="remove --why")
    explain(record, ledger, output)


def show_result(result: CampaignResult, output: OutputOptions) -> int:
    """Write and print the result of a campaign; return the exit status."""
    write_and_print(result, output)
    write_study_figures(result, output)
    return exit_status(result)


def write_study_figures(result: CampaignResult, output: OutputOptions) -> None:
    """Write the figures of a built-in study, and figures of its iterations.

    Raise `UnusableInput` if the folder cannot be created or written to.
    """
    document = result.document
    if document.run.study == COMPARE_STUDY:
        return
    from equipoise.shared.pictures import require_figures
    from equipoise.studies.catalogue import analysis_of

    study_analysis = analysis_of(document.run.study)
    if study_analysis is None:
        return
    try:
        require_figures()
    except UnusableInput as missing:
        # The user did not request these figures: with --figures, the command would have failed.
        say(f"the study's own figures are left out: {missing.what}", missing.hint)
        return
    from equipoise.figures.gallery import iteration_figures
    from equipoise.report.document import Paragraph
    from equipoise.report.renderers.terminal import print_parts

    folder = output.figures or output.ledger.parent / FIGURES_FOLDER / document.run.id
    files = save_figures([*study_analysis.figures(document), *iteration_figures(document)], folder)
    if files and output.prints_result:
        print_parts([Paragraph(f"figure: {file}") for file in files], color=output.color)


def exit_status(result: CampaignResult) -> int:
    """Return the exit status: 3 if a trial timed out and a verdict is missing, else 0."""
    is_undecided = any(row.verdict == "undecided" for row in result.document.comparisons)
    timed_out = next((trial for trial in result.record.trials if trial.timed_out), None)
    if timed_out is None or not is_undecided:
        return EXIT_DONE
    name = result.record.plan.conditions[timed_out.condition].name
    say(
        f"no verdict: {name} {timed_out.failure}",
        "give the command more time with --timeout, or run more blocks with --blocks and --budget",
    )
    return EXIT_CONDITION_FAILED
