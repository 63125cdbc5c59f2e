"""``equipoise list``: what the ledger holds, and what has a name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.design.site import what_is_missing
from equipoise.ledger import open_for_reading
from equipoise.measure.installation import host_site
from equipoise.measure.probes import probe_program, probe_rows, why_unavailable
from equipoise.model.host import CERTIFICATE_STUDY
from equipoise.model.primitives import ProbeRow
from equipoise.model.study import Level
from equipoise.report.builders.result import runs_table
from equipoise.report.document import Column, Table
from equipoise.report.renderers.terminal import print_parts
from equipoise.studies.catalogue import built_in_studies
from equipoise.studies.kinds import KINDS

KINDS_OF_LISTS = ("runs", "studies", "allocators", "blas", "probes")


@click.command("list")
@click.argument("what", type=click.Choice(KINDS_OF_LISTS), default="runs")
@click.option("--all", "every", is_flag=True, help="Also the campaigns of certificates.")
@options.ledger_option
@click.option("--no-color", is_flag=True, help="Print without colour.")
def command(**given: Any) -> int:
    """List campaigns, the latest last, or studies, allocators, BLAS libraries or probes."""
    color = not given["no_color"]
    match given["what"]:
        case "studies":
            rows = [(study.name, study.summary) for study in built_in_studies()]
            _print_table(("study", "what it asks"), rows, color=color)
        case "allocators":
            _print_table(
                ("allocator", "what it is", "here"),
                [_listed(level) for level in KINDS["allocator"].choices],
                color=color,
            )
        case "blas":
            _print_table(
                ("library", "what it is", "here"),
                [_listed(level) for level in KINDS["blas"].choices],
                color=color,
            )
        case "probes":
            _print_probes(color=color)
        case _:
            with open_for_reading(given["ledger_path"]) as ledger:
                runs = ledger.runs()
            if not given["every"]:
                runs = [run for run in runs if run.study != CERTIFICATE_STUDY]
            print_parts([runs_table(runs)], color=color)
    return 0


def _print_table(headings: Sequence[str], rows: Sequence[tuple[str, ...]], *, color: bool) -> None:
    columns = tuple(Column(heading, "words") for heading in headings)
    print_parts([Table(columns, tuple(rows))], color=color)


def _print_probes(*, color: bool) -> None:
    program = probe_program()
    listed = [
        (row.name, f"{row.group.replace('_', ' ')}: {row.words}", _here(program, row))
        for row in probe_rows(program)
    ]
    _print_table(("row", "what one operation is", "here"), listed, color=color)


def _here(program: Path, row: ProbeRow) -> str:
    reason = why_unavailable(program, row)
    return "yes" if reason is None else f"no: {reason}"


def _listed(level: Level) -> tuple[str, str, str]:
    missing = what_is_missing(level, host_site())
    if missing is None:
        return level.name, level.summary, "yes"
    return level.name, level.summary, f"no: {missing.hint}"
