"""``equipoise list``: what the ledger holds, and what has a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from equipoise.analysis.result import iso_time
from equipoise.cli import options
from equipoise.cli.output_files import write_json
from equipoise.design.site import what_is_missing
from equipoise.interop.reading import as_unicode
from equipoise.ledger import open_for_reading
from equipoise.measure.installation import host_site
from equipoise.measure.probes import probe_program, probe_rows, why_unavailable
from equipoise.model.host import CERTIFICATE_STUDY
from equipoise.model.record import RunSummary
from equipoise.report.builders.result import runs_table
from equipoise.report.document import Column, Part, Table
from equipoise.report.renderers.terminal import print_parts
from equipoise.studies.catalogue import built_in_studies
from equipoise.studies.kinds import KINDS

Row = tuple[str, ...]


def _studies() -> Iterator[Row]:
    return ((study.name, study.summary) for study in built_in_studies())


def _levels(kind: str) -> Iterator[Row]:
    for level in KINDS[kind].choices:
        missing = what_is_missing(level, host_site())
        yield level.name, level.summary, "yes" if missing is None else f"no: {missing.hint}"


def _probes() -> Iterator[Row]:
    program = probe_program()
    for row in probe_rows(program):
        reason = why_unavailable(program, row)
        operation = f"{row.group.replace('_', ' ')}: {row.summary}"
        yield row.name, operation, "yes" if reason is None else f"no: {reason}"


TABLES: dict[str, tuple[Row, Callable[[], Iterator[Row]]]] = {
    "studies": (("study", "what it asks"), _studies),
    "allocators": (("allocator", "what it is", "here"), lambda: _levels("allocator")),
    "blas": (("library", "what it is", "here"), lambda: _levels("blas")),
    "probes": (("row", "what one operation is", "here"), _probes),
}
"""Headings and rows of each list but that of campaigns."""


@click.command("list")
@click.argument("what", type=click.Choice(["runs", *TABLES]), default="runs")
@click.option("--all", "every", is_flag=True, help="Also the campaigns of certificates.")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    help="Write the list as JSON, an object for each row; '-' for stdout.",
)
@options.ledger_option
@options.color_option
def command(**arguments: Any) -> int:
    """List campaigns, the latest last, or studies, allocators, BLAS libraries or probes."""
    table: Part
    if arguments["what"] == "runs":
        runs = _campaigns(arguments["ledger"], every=arguments["every"])
        table, objects = runs_table(runs), [_as_object(run) for run in runs]
    else:
        headings, rows_of = TABLES[arguments["what"]]
        rows = tuple(rows_of())
        table = Table(tuple(Column(heading, "words") for heading in headings), rows)
        objects = [dict(zip(headings, row, strict=True)) for row in rows]
    json_file: str | None = arguments["json_file"]
    write_json(json_file, lambda: msgspec.json.encode(objects))
    if json_file != "-":
        print_parts([table], color=arguments["color"])
    return 0


def _campaigns(ledger_path: Path, *, every: bool) -> list[RunSummary]:
    with open_for_reading(ledger_path) as ledger:
        runs = ledger.runs()
    return [run for run in runs if every or run.study != CERTIFICATE_STUDY]


def _as_object(run: RunSummary) -> dict[str, Any]:
    return {
        "id": run.id,
        "study": run.study,
        "started": iso_time(run.started_at),
        "trials": run.trials,
        "stopped_because": run.stopped_because,
        "conditions": [as_unicode(name) for name in run.commands],
    }
