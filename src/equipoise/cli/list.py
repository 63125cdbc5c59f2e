"""``equipoise list``: what the ledger holds."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import options
from equipoise.ledger import open_for_reading
from equipoise.model.certificate import CERTIFICATE_STUDY
from equipoise.report import terminal


@click.command("list")
@click.argument("what", type=click.Choice(["runs"]), default="runs")
@click.option("--all", "every", is_flag=True, help="Also the campaigns of certificates.")
@options.ledger_option
@click.option("--no-color", is_flag=True, help="Print without colour.")
def command(**given: Any) -> int:
    """List the campaigns in the ledger, the latest last."""
    with open_for_reading(given["ledger_path"]) as ledger:
        runs = ledger.runs()
    if not given["every"]:
        runs = [run for run in runs if run.study != CERTIFICATE_STUDY]
    terminal.print_runs(runs, color=not given["no_color"])
    return 0
