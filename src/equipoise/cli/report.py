"""``equipoise report``: one page that can be sent, and every figure as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.campaign.explaining.newest import newest_experiment
from equipoise.campaign.from_document import Sequences, sequences_in
from equipoise.campaign.result import document_of
from equipoise.campaign.sequences import sequences_of
from equipoise.cli import options
from equipoise.cli.again import again_of, os_again_of
from equipoise.cli.figure_files import save_figures
from equipoise.cli.output_file import check_folder, write_file
from equipoise.cli.pictures import flame_graph_of
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.primitives import OS_STUDY
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import decode
from equipoise.studies.own_findings import own_findings

if TYPE_CHECKING:
    from equipoise.report.html import Reported

DOCUMENT = ".json"


@click.command("report", epilog="Example: equipoise report last -o result.html")
@click.argument("runs", nargs=-1, metavar="[RUN | FILE.json …]")
@click.option(
    "-o",
    "--output",
    "output",
    metavar="FILE.html",
    type=click.Path(path_type=Path),
    help="Where the page goes.",
)
@click.option(
    "--figures",
    "figures",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write each figure there too, as .html, .svg and .png.",
)
@options.ledger_option
def command(**given: Any) -> int:
    """Write a page of RUN (an id, its beginning, or 'last', which is the default).

    A file that --json wrote will do as well: all is made from it, and nothing is run again. The
    page is one file that makes no request: it can be sent, kept and printed. Several runs go into
    one page.
    """
    output: Path | None = given["output"]
    figures: Path | None = given["figures"]
    if output is None and figures is None:
        raise UnusableInput(
            "nothing is asked for", mend="-o PAGE.html for a page, --figures FOLDER for its figures"
        )
    if output is not None:
        if output.suffix.lower() not in (".html", ".htm"):
            raise UnusableInput(f"{output} is no page", mend="end the name in .html")
        check_folder(output)
    from equipoise.figures.library import require_figures

    require_figures()
    reported = [_asked(one, given["ledger_path"]) for one in given["runs"] or ("last",)]
    if output is not None:
        write_page(output, reported)
    if figures is not None:
        _write_figures(figures, reported)
    return 0


def write_page(path: Path, reported: Sequence[Reported]) -> None:
    """Write one page of these campaigns.

    Raises
    ------
    UnusableInput
        It cannot be written.
    """
    from equipoise.report.html import page

    write_file(path, page(reported).encode())


def reported_of(record: RunRecord, document: ResultDocument) -> Reported:
    """What a page needs of a campaign and its result."""
    reported = _reported(document, sequences_of(record), _again(record))
    return replace(reported, flame_graph=flame_graph_of(record, document))


def _asked(named: str, ledger_path: Path) -> Reported:
    """A campaign of the ledger, or of a document."""
    path = Path(named)
    if path.suffix.lower() != DOCUMENT:
        with open_for_reading(ledger_path) as ledger:
            record = ledger.read_run(named)
            experiment = newest_experiment(record, ledger)
        return reported_of(record, document_of(record, experiment))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnusableInput(
            f"cannot read {path}: {error.strerror}", mend="name a file that --json wrote"
        ) from None
    document = decode(content, named)
    return _reported(document, sequences_in(document), None)


def _reported(document: ResultDocument, sequences: Sequences, again: str | None) -> Reported:
    from equipoise.report.html import Reported

    own = own_findings(document.run.study)
    own_figures = () if own is None else tuple(own.figures(document))
    return Reported(document, sequences, again, own_figures=own_figures)


def _again(record: RunRecord) -> str | None:
    if record.plan.study == OS_STUDY:
        return os_again_of(record.plan)
    return again_of(record.plan) if record.plan.study == "compare" else None


def _write_figures(folder: Path, reported: Sequence[Reported]) -> None:
    """Each campaign's own folder in it, where there are several."""
    from equipoise.report.html import figures_of

    for number, one in enumerate(reported, start=1):
        place = folder if len(reported) == 1 else folder / f"{number}-{one.document.run.id}"
        save_figures(figures_of(one), place)
