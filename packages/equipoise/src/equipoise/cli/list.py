"""``equipoise list``: list campaigns, studies, allocators, BLAS libraries or probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.options.outputs import check_folder
from equipoise.cli.writing import write_json
from equipoise.design.libraries import KINDS
from equipoise.design.site import first_missing
from equipoise.ledger import open_for_reading
from equipoise.measure.installation import host_site
from equipoise.model.host import CERTIFICATE_STUDY
from equipoise.model.kinds import every_kind, load
from equipoise.model.packages import missing_studies_error
from equipoise.model.quantities import iso_time
from equipoise.report.builders.runs import runs_document
from equipoise.report.document import Column, Document, Form, Paragraph, Table
from equipoise.report.renderers.terminal import print_document
from equipoise.shared.safe_text import as_unicode
from equipoise.studies.catalogue import built_in_studies

Row = tuple[str, ...]
"""Cells of a row, or the headings of a list."""


def _study_rows() -> Iterator[Row]:
    return ((study.name, study.summary) for study in built_in_studies())


def _library_rows(factor: str) -> Iterator[Row]:
    for level in KINDS[factor].all_levels:
        missing = first_missing(level, host_site())
        yield level.name, level.summary, "yes" if missing is None else f"no: {missing.hint}"


LISTS: dict[str, tuple[Row, Callable[[], Iterator[Row]]]] = {
    "studies": (("study", "what it asks"), _study_rows),
    "allocators": (("allocator", "what it is", "here"), lambda: _library_rows("allocator")),
    "blas": (("library", "what it is", "here"), lambda: _library_rows("blas")),
}
"""Headings of each list, and the function that reads its rows; the list of campaigns is apart."""
PROBES_LIST = "probes"
"""Name of the list of timed operations, which the package `equipoise-studies` adds."""


class ListRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise list`."""

    list_name: str
    all_runs: bool
    """Whether to list campaigns of certificates and of single hosts."""
    ledger: Path
    json_file: str | None
    verbose: bool
    color: bool


@click.command("list")
@click.argument("list_name", type=click.Choice(["runs", *LISTS, PROBES_LIST]), default="runs")
@options.flag(
    "--all",
    "all_runs",
    help="Also list campaigns of `equipoise doctor --certify`, and of each host of a cluster.",
)
@options.ledger_option
@options.json_option("the list as a JSON array")
@options.verbose_option
@options.color_option
@options.pass_request(ListRequest)
def command(request: ListRequest) -> int:
    """List campaigns, the latest last, or studies, allocators, BLAS libraries or probes.

    If nothing has been measured yet, the list is empty; this is not an error.
    """
    json_file = request.json_file
    if json_file is not None and json_file != "-":
        check_folder(Path(json_file))
    if request.list_name == "runs":
        document, entries = _campaign_list(request.ledger, all_runs=request.all_runs)
    else:
        document, entries = _list_by_name(request.list_name)
    write_json(json_file, lambda: msgspec.json.format(msgspec.json.encode(entries)) + b"\n")
    if json_file != "-":
        form: Form = "verbose" if request.verbose else "brief"
        print_document(document, color=request.color, form=form)
    return 0


def _list_by_name(name: str) -> tuple[Document, list[dict[str, str]]]:
    if name in LISTS:
        headings, read_rows = LISTS[name]
        rows = tuple(read_rows())
    else:
        headings, rows = _list_of_package(name)
    keys = ("name", "summary", "available")
    table = Table(tuple(Column(heading, "text") for heading in headings), rows)
    entries = [dict(zip(keys, row, strict=False)) for row in rows]
    return Document(name, name, (table,)), entries


def _list_of_package(name: str) -> tuple[Row, tuple[Row, ...]]:
    for kind in every_kind():
        if name in kind.lists:
            headings, rows = load(kind.lists[name])()
            return headings, rows
    raise missing_studies_error(f"the list of {name}")


def _campaign_list(ledger_path: Path, *, all_runs: bool) -> tuple[Document, list[dict[str, Any]]]:
    ledger_source = click.get_current_context().get_parameter_source("ledger")
    # A ledger that the user names must exist. `absolute` fails if the working folder is missing.
    if ledger_source is ParameterSource.DEFAULT and not ledger_path.absolute().exists():
        next_step = "equipoise compare measures the first one"
        sentence = f"no campaigns yet: there is no ledger at {ledger_path}; {next_step}"
        return Document("runs", "Campaigns", (Paragraph(sentence),)), []
    with open_for_reading(ledger_path) as ledger:
        runs = [
            run
            for run in ledger.runs()
            # A fleet's campaign has one line: its hosts have campaigns of their own.
            if all_runs or (run.study != CERTIFICATE_STUDY and run.part_of is None)
        ]
    return runs_document(runs), [
        {
            "id": run.id,
            "study": run.study,
            "conditions": [as_unicode(name) for name in run.commands],
            "started": iso_time(run.started_at),
            "trials": run.trials,
            "stopped_because": run.stopped_because,
            "host": run.host,
            "part_of": run.part_of,
            "hosts": run.hosts,
        }
        for run in runs
    ]
