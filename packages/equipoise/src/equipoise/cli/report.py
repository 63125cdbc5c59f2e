"""``equipoise report``: write a campaign as one file to send, and its figures as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.completion import complete_runs_and_files
from equipoise.cli.options.outputs import (
    REPORT_EXTENSIONS,
    OutputOptions,
    check_report,
    read_for_display,
)
from equipoise.cli.results import read_result
from equipoise.cli.writing import (
    ReportedCampaign,
    folder_name,
    report_input_of,
    save_figures,
    save_flame_graph,
    write_report,
)
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.studies.catalogue import with_findings

DOCUMENT_EXTENSION = ".json"
"""Extension of a file that ``--json`` wrote."""


class ReportRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise report`."""

    runs: tuple[str, ...]
    output: Path | None
    figures: Path | None
    show_env: bool
    ledger: Path


@click.command("report", epilog="Example: equipoise report last -o result.html")
@click.argument(
    "runs", nargs=-1, metavar="[RUN | FILE.json …]", shell_complete=complete_runs_and_files
)
@options.file_option(
    "-o",
    "--output",
    help=f"File of the report; its extension selects the format: {', '.join(REPORT_EXTENSIONS)}.",
)
@options.figures_option
@options.show_env_option
@options.ledger_option
@options.pass_request(ReportRequest)
def command(request: ReportRequest) -> int:
    """Write a report of RUN (an id, its beginning, or 'last', which is the default).

    FILE.html is a page with every figure; it loads nothing from the network, so you can send, keep
    and print it. FILE.md is for a pull request, FILE.tex has tables for a paper, and FILE.csv the
    numbers. Instead of RUN you may name a file that --json wrote; nothing is measured again.
    Several runs go into one report.
    """
    output, figures = request.output, request.figures
    if output is None and figures is None:
        raise UnusableInput(
            "neither a report nor figures are requested",
            hint="add -o PAGE.html for a page, or --figures FOLDER for the figures",
        )
    if output is not None:
        check_report(output)
    options_of_results = OutputOptions(ledger=request.ledger, show_env=request.show_env)
    campaigns = [_read_campaign(name, options_of_results) for name in request.runs or ("last",)]
    if output is not None:
        write_report(output, campaigns)
    if figures is not None:
        _write_figures(figures, campaigns)
    return 0


def _read_campaign(name: str, output: OutputOptions) -> ReportedCampaign:
    path = Path(name)
    if path.suffix.lower() == DOCUMENT_EXTENSION:
        return with_findings(read_for_display(path, show_env=output.show_env)), None
    with open_for_reading(output.ledger) as ledger:
        result = read_result(name, ledger, output)
    return result.document, result.record


def _write_figures(folder: Path, campaigns: Sequence[ReportedCampaign]) -> None:
    from equipoise.report.builders.result import campaign_document
    from equipoise.report.document import figures_of

    for number, (document, record) in enumerate(campaigns, start=1):
        report_input = report_input_of(document, record, with_figures=True)
        subfolder = folder_name(number, document.run.id) if len(campaigns) > 1 else ""
        save_figures(figures_of(campaign_document(report_input)), folder / subfolder)
        if report_input.flame_graph is not None:
            save_flame_graph(report_input.flame_graph, folder / subfolder)
