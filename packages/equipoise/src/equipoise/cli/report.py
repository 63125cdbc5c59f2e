"""``equipoise report``: one file that can be sent, and every figure as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.completion import complete_runs_and_files
from equipoise.cli.options.outputs import (
    REPORT_FORMS,
    OutputOptions,
    check_report,
    read_reported,
)
from equipoise.cli.results import read_result
from equipoise.cli.writing import (
    ReportedCampaign,
    folder_name,
    report_of,
    save_figures,
    save_flame_graph,
    write_report,
)
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.studies.catalogue import with_findings

DOCUMENT = ".json"


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
    help=f"Where the report goes; its ending says how: {', '.join(REPORT_FORMS)}.",
)
@options.figures_option
@options.show_env_option
@options.ledger_option
@options.pass_request(ReportRequest)
def command(request: ReportRequest) -> int:
    """Write a report of RUN (an id, its beginning, or 'last', which is the default).

    FILE.html is one page with every figure that makes no request: it can be sent, kept and
    printed. FILE.md is for a pull request, FILE.tex a table for a paper, FILE.csv its numbers.
    A file that --json wrote will do as RUN: all is made from it, and nothing is run again.
    Several runs go into one report.
    """
    output, figures = request.output, request.figures
    if output is None and figures is None:
        raise UnusableInput(
            "nothing to write", hint="-o PAGE.html for a page, --figures FOLDER for its figures"
        )
    if output is not None:
        check_report(output)
    origin = OutputOptions(ledger=request.ledger, show_env=request.show_env)
    campaigns = [_campaign(name, origin) for name in request.runs or ("last",)]
    if output is not None:
        write_report(output, campaigns)
    if figures is not None:
        _write_figures(figures, campaigns)
    return 0


def _campaign(name: str, origin: OutputOptions) -> ReportedCampaign:
    """Return a campaign of the ledger, or of a document."""
    path = Path(name)
    if path.suffix.lower() == DOCUMENT:
        return with_findings(read_reported(path, show_env=origin.show_env)), None
    with open_for_reading(origin.ledger) as ledger:
        result = read_result(name, ledger, origin)
    return result.document, result.record


def _write_figures(folder: Path, campaigns: Sequence[ReportedCampaign]) -> None:
    """Write the figures of each campaign, of several into a folder for each."""
    from equipoise.report.builders.result import campaign_document
    from equipoise.report.document import figures_of

    for number, (document, record) in enumerate(campaigns, start=1):
        report = report_of(document, record, figures=True)
        place = folder if len(campaigns) == 1 else folder / folder_name(number, document.run.id)
        save_figures(figures_of(campaign_document(report)), place)
        if report.flame_graph is not None:
            save_flame_graph(report.flame_graph, place)
