"""``equipoise why``: where the extra time of the slower condition goes, and what closes the gap."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.conducting import measuring
from equipoise.cli.explaining import observe_gap, say_it_was_tested, try_interventions
from equipoise.cli.load_result import load_result, recorded_name, reported
from equipoise.cli.output_files import write_file
from equipoise.cli.output_options import OutputOptions
from equipoise.cli.pictures import (
    picture_options,
    pictures_of,
    say_that_none_is_drawn,
    write_pictures,
)
from equipoise.cli.report_files import ReportedCampaign, write_report
from equipoise.cli.study_data import require_data
from equipoise.cli.why_options import (
    evidence_options,
    evidence_request,
    experiment_options,
    experiment_request,
    needs_experiment,
)
from equipoise.ledger import Ledger, open_for_reading
from equipoise.measure.installation import host_site
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.document import Paragraph, Part
from equipoise.report.json_document import encode
from equipoise.why.campaigns import latest_experiment
from equipoise.why.evidence.collect import EvidenceRequest, missing_runs
from equipoise.why.experiment.plan import ExperimentRequest, OpenGap, check_names
from equipoise.why.explanation import evidence_of_gap, with_causes
from equipoise.why.gap import Gap, as_reported, choose_gap, nothing_to_explain


@click.command("why", epilog="Example: equipoise why last")
@click.argument("run")
@click.option("--baseline", metavar="NAME", help="The baseline of the comparison to explain.")
@click.option("--candidate", metavar="NAME", help="The candidate of the comparison to explain.")
@evidence_options
@experiment_options
@click.option("--again", is_flag=True, help="Observe and test again what is known.")
@picture_options
@options.ledger_option
@options.report_option
@options.show_env_option
@options.concurrent_option
@options.output_options
def command(**values: Any) -> int:
    """Say why one condition of RUN (an id, its beginning, or 'last') is slower.

    Equipoise runs both conditions of a comparison that was called again under several sources of
    evidence, in random order; it never times these runs. Then it changes what they suggest on both
    conditions, block by block, and judges the effect. It does not repeat what it knows already.
    docs/why.md lists the causes and what can be changed.
    """
    output = OutputOptions.from_options(values)
    request = evidence_request(values)
    pictures = pictures_of(values)
    with open_for_reading(output.ledger) as ledger:
        record = _explained(ledger.read_run(values["run"]), ledger)
        names = (recorded_name(record, values[one]) for one in ("baseline", "candidate"))
        gap = choose_gap(record, *names)
        experiment = latest_experiment(record, ledger, gap.contrast)
    experimenting = experiment_request(values, record.plan)
    check_names(OpenGap(record, gap.contrast), experimenting, host_site())
    if gap.is_called:
        record = _observed(record, gap, request, output)
        if pictures:
            shown, _ = reported(record, None, show_env=output.show_env)
            write_pictures(pictures, evidence_of_gap(shown, as_reported(gap, record, shown)))
        if output.test and experiment is not None and not needs_experiment(values):
            if not output.quiet:
                say_it_was_tested(experiment)
        elif output.test:
            experiment = _tested(record, gap, experimenting, output)
    else:
        say_that_none_is_drawn(pictures)
    _show(record, gap, experiment, output)
    return 0


def _explained(record: RunRecord, ledger: Ledger) -> RunRecord:
    """Return the campaign whose gap it is: ``last`` may name the one that tested it."""
    explains = record.plan.explains
    return record if explains is None else ledger.read_run(explains.run)


def _observed(
    record: RunRecord, gap: Gap, request: EvidenceRequest, output: OutputOptions
) -> RunRecord:
    """Return the campaign with evidence; a ledger that has all of it may be read-only."""
    if not missing_runs(record, gap, request):
        return record
    require_data(record.plan, output.ledger)
    with measuring(output) as (ledger, _):
        return observe_gap(record, gap, request, ledger, output)


def _tested(
    record: RunRecord, gap: Gap, request: ExperimentRequest, output: OutputOptions
) -> RunRecord | None:
    """Return the campaign that tested the causes; ``None`` if there is none."""
    require_data(record.plan, output.ledger)
    with measuring(output) as (ledger, _):
        try_interventions(record, gap, request, ledger, output)
        return latest_experiment(record, ledger, gap.contrast)


def _show(
    recorded: RunRecord, gap: Gap, experiment: RunRecord | None, output: OutputOptions
) -> None:
    record, experiment = reported(recorded, experiment, show_env=output.show_env)
    gap = as_reported(gap, recorded, record)
    document = load_result(record, output, experiment)
    if gap.is_called:
        document = with_causes(document, record, experiment, gap)
    if output.json_file not in (None, "-"):
        write_file(Path(str(output.json_file)), encode(document))
    if output.report_file is not None:
        write_report(output.report_file, [ReportedCampaign(document, record)])
    if output.json_file == "-":
        sys.stdout.buffer.write(encode(document))
    elif not output.quiet:
        _print(document, gap, output)


def _print(document: ResultDocument, gap: Gap, output: OutputOptions) -> None:
    from equipoise.report.builders.why import why_parts
    from equipoise.report.renderers.terminal import print_parts

    parts: list[Part] = [Paragraph(nothing_to_explain(gap))]
    if gap.is_called:
        parts = [Paragraph(gap.comparison.summary), *why_parts(document)]
    if gap.chosen_because is not None:
        chosen = f"{gap.chosen_because}; --baseline and --candidate name another"
        parts.insert(0, Paragraph(chosen))
    print_parts(parts, color=output.color)
