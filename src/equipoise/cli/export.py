"""``equipoise export``: the trials of a campaign as a table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise.campaign.result import document_of
from equipoise.cli import options
from equipoise.cli.output_file import check_folder, write_file
from equipoise.interop.trials import WRITERS
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput


@click.command("export", epilog="Example: equipoise export last -o trials.csv")
@click.argument("run", default="last")
@click.option(
    "-o",
    "--output",
    "output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="Where to; its ending says how: .json, .csv or .parquet.",
)
@options.ledger_option
def command(**given: Any) -> int:
    """Write every trial of RUN (an id, its beginning, or 'last'), one row each.

    Levels, covariates and the workload's own metrics are columns of their own.
    """
    output: Path = given["output"]
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        raise UnusableInput(
            f"{output}: trials cannot be written as '{output.suffix}'",
            mend=f"end the name in {', '.join(WRITERS)}",
        )
    check_folder(output)
    with open_for_reading(given["ledger_path"]) as ledger:
        record = ledger.read_run(given["run"])
    write_file(output, writer(document_of(record)))
    return 0
