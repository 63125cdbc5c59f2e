"""``equipoise report``: one file that can be sent, and every figure as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.load_result import reported, reported_document, with_findings
from equipoise.cli.output_files import folder_name, save_figures, save_flame_graph
from equipoise.cli.report_files import (
    FORMS,
    ReportedCampaign,
    check_report,
    with_figures,
    write_report,
)
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.report.json_document import read_document
from equipoise.why.campaigns import latest_experiment, result_of

DOCUMENT = ".json"


@click.command("report", epilog="Example: equipoise report last -o result.html")
@click.argument("runs", nargs=-1, metavar="[RUN | FILE.json …]")
@click.option(
    "-o",
    "--output",
    "output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"Where the report goes; its ending says how: {', '.join(FORMS)}.",
)
@options.figures_option
@options.show_env_option
@options.ledger_option
def command(**given: Any) -> int:
    """Write a report of RUN (an id, its beginning, or 'last', which is the default).

    FILE.html is one page with every figure that makes no request: it can be sent, kept and
    printed. FILE.md is for a pull request, FILE.tex a table for a paper, FILE.csv its numbers.
    A file that --json wrote will do as RUN: all is made from it, and nothing is run again.
    Several runs go into one report.
    """
    output: Path | None = given["output"]
    figures: Path | None = given["figures"]
    if output is None and figures is None:
        raise UnusableInput(
            "nothing is asked for", hint="-o PAGE.html for a page, --figures FOLDER for its figures"
        )
    if output is not None:
        check_report(output)
    found = [
        _asked(one, given["ledger_path"], show_env=given["show_env"])
        for one in given["runs"] or ("last",)
    ]
    if output is not None:
        write_report(output, found)
    if figures is not None:
        _write_figures(figures, found)
    return 0


def _asked(named: str, ledger_path: Path, *, show_env: bool) -> ReportedCampaign:
    """Return a campaign of the ledger, or of a document."""
    path = Path(named)
    if path.suffix.lower() != DOCUMENT:
        with open_for_reading(ledger_path) as ledger:
            record = ledger.read_run(named)
            experiment = latest_experiment(record, ledger)
        record, experiment = reported(record, experiment, show_env=show_env)
        return ReportedCampaign(with_findings(result_of(record, experiment)), record)
    document = reported_document(read_document(path), show_env=show_env)
    return ReportedCampaign(with_findings(document), None)


def _write_figures(folder: Path, found: Sequence[ReportedCampaign]) -> None:
    """Each campaign's own folder in it, where there are several."""
    from equipoise.report.builders.result import campaign_document
    from equipoise.report.document import figures_of

    for number, one in enumerate(found, start=1):
        report = with_figures(one)
        place = folder if len(found) == 1 else folder / folder_name(number, one.document.run.id)
        save_figures(figures_of(campaign_document(report)), place)
        if report.flame_graph is not None:
            save_flame_graph(report.flame_graph, place)
