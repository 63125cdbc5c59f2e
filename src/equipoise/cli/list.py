"""``equipoise list``: what the ledger holds, and what has a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from equipoise.cli import options
from equipoise.design.site import what_is_missing
from equipoise.ledger import open_for_reading
from equipoise.measure.installation import host_site
from equipoise.measure.probes import probe_program, probe_rows, why_unavailable
from equipoise.model.host import CERTIFICATE_STUDY
from equipoise.report.builders.result import runs_table
from equipoise.report.document import Column, Part, Table
from equipoise.report.renderers.terminal import print_parts
from equipoise.studies.catalogue import built_in_studies
from equipoise.studies.kinds import KINDS

KINDS_OF_LISTS = ("runs", "studies", "allocators", "blas", "probes")


@click.command("list")
@click.argument("what", type=click.Choice(KINDS_OF_LISTS), default="runs")
@click.option("--all", "every", is_flag=True, help="Also the campaigns of certificates.")
@options.ledger_option
@options.color_option
def command(**arguments: Any) -> int:
    """List campaigns, the latest last, or studies, allocators, BLAS libraries or probes."""
    match arguments["what"]:
        case "studies":
            rows = [(study.name, study.summary) for study in built_in_studies()]
            part: Part = _table(("study", "what it asks"), rows)
        case "allocators":
            part = _table(("allocator", "what it is", "here"), _levels("allocator"))
        case "blas":
            part = _table(("library", "what it is", "here"), _levels("blas"))
        case "probes":
            part = _table(("row", "what one operation is", "here"), _probes())
        case _:
            with open_for_reading(arguments["ledger"]) as ledger:
                runs = ledger.runs()
            if not arguments["every"]:
                runs = [run for run in runs if run.study != CERTIFICATE_STUDY]
            part = runs_table(runs)
    print_parts([part], color=arguments["color"])
    return 0


def _table(headings: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Table:
    return Table(tuple(Column(heading, "words") for heading in headings), tuple(rows))


def _levels(kind: str) -> Iterator[tuple[str, str, str]]:
    for level in KINDS[kind].choices:
        missing = what_is_missing(level, host_site())
        yield level.name, level.summary, "yes" if missing is None else f"no: {missing.hint}"


def _probes() -> Iterator[tuple[str, str, str]]:
    program = probe_program()
    for row in probe_rows(program):
        reason = why_unavailable(program, row)
        operation = f"{row.group.replace('_', ' ')}: {row.summary}"
        yield row.name, operation, "yes" if reason is None else f"no: {reason}"
