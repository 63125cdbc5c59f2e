"""``equipoise list``: what the ledger holds, and what has a name."""

from __future__ import annotations

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
from equipoise.report import terminal
from equipoise.report.listing import Listed, print_listing
from equipoise.studies.catalogue import built_in_studies
from equipoise.studies.kinds import KINDS

KINDS_OF_LISTS = ("runs", "studies", "allocators", "blas", "probes")


@click.command("list")
@click.argument("what", type=click.Choice(KINDS_OF_LISTS), default="runs")
@click.option("--all", "every", is_flag=True, help="Also the campaigns of certificates.")
@options.ledger_option
@click.option("--no-color", is_flag=True, help="Print without colour.")
def command(**given: Any) -> int:
    """List the campaigns in the ledger, the latest last; the built-in studies; the allocators;
    the libraries of linear algebra; the probes of `equipoise os`."""
    color = not given["no_color"]
    match given["what"]:
        case "studies":
            found = [Listed(study.name, study.summary) for study in built_in_studies()]
            print_listing(("study", "what it asks"), found, color=color)
        case "allocators":
            print_listing(
                ("allocator", "what it is", "here"),
                [_listed(level) for level in KINDS["allocator"].choices],
                color=color,
            )
        case "blas":
            print_listing(
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
            terminal.print_runs(runs, color=color)
    return 0


def _print_probes(*, color: bool) -> None:
    program = probe_program()
    listed = [
        Listed(row.name, f"{row.group.replace('_', ' ')}: {row.words}", _here(program, row))
        for row in probe_rows(program)
    ]
    print_listing(("row", "what one operation is", "here"), listed, color=color)


def _here(program: Path, row: ProbeRow) -> str:
    reason = why_unavailable(program, row)
    return "yes" if reason is None else f"no: {reason}"


def _listed(level: Level) -> Listed:
    missing = what_is_missing(level, host_site())
    if missing is None:
        return Listed(level.name, level.summary, "yes")
    return Listed(level.name, level.summary, f"no: {missing.hint}")
