"""``equipoise report``: one page that can be sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.campaign.result import document_of
from equipoise.campaign.sequences import sequences_of
from equipoise.cli import options
from equipoise.cli.again import again_of, os_again_of
from equipoise.cli.output_file import check_folder, write_file
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.primitives import OS_STUDY
from equipoise.model.record import RunRecord
from equipoise.studies.own_findings import own_findings

if TYPE_CHECKING:
    from equipoise.report.html import Reported


@click.command("report", epilog="Example: equipoise report last -o result.html")
@click.argument("runs", nargs=-1, metavar="[RUN …]")
@click.option(
    "-o",
    "--output",
    "output",
    metavar="FILE.html",
    type=click.Path(path_type=Path),
    required=True,
    help="Where to.",
)
@options.ledger_option
def command(**given: Any) -> int:
    """Write a page of RUN (an id, its beginning, or 'last', which is the default).

    The page is one file that makes no request: it can be sent, kept and printed. Several
    runs go into one page.
    """
    output: Path = given["output"]
    if output.suffix.lower() not in (".html", ".htm"):
        raise UnusableInput(f"{output} is no page", mend="end the name in .html")
    check_folder(output)
    from equipoise.figures.library import require_figures

    require_figures()
    with open_for_reading(given["ledger_path"]) as ledger:
        records = [ledger.read_run(run) for run in given["runs"] or ("last",)]
    write_report(output, records)
    return 0


def write_report(path: Path, records: Sequence[RunRecord]) -> None:
    """Write one page of these campaigns.

    Raises
    ------
    UnusableInput
        It cannot be written.
    """
    from equipoise.report.html import page

    write_file(path, page([reported_of(record) for record in records]).encode())


def reported_of(record: RunRecord) -> Reported:
    """What a page needs of a campaign."""
    from equipoise.report.html import Reported

    document = document_of(record)
    own = own_findings(document.run.study)
    return Reported(
        document,
        sequences_of(record),
        _again(record),
        own_figures=() if own is None else tuple(own.figures(document)),
    )


def _again(record: RunRecord) -> str | None:
    if record.plan.study == OS_STUDY:
        return os_again_of(record.plan)
    return again_of(record.plan) if record.plan.study == "compare" else None
