"""``equipoise import``: files of other tools become a run of the ledger."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from equipoise.analysis.result import analyse_campaign
from equipoise.cli import options
from equipoise.cli.load_result import reported
from equipoise.cli.output_options import OutputOptions, show
from equipoise.interop.assembly import Named, assemble
from equipoise.interop.formats import FORMATS
from equipoise.interop.reading import read_source, read_within_bounds
from equipoise.ledger import open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Judgement


@click.command("import", epilog="Example: equipoise import -n old -n new old.json new.json")
@click.argument("files", nargs=-1, required=True, metavar="FILE …")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="What wrote the files; by default their content tells.",
)
@click.option(
    "-n",
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="What a file measured, one for each file in order: these are compared.",
)
@click.option(
    "--baseline", metavar="NAME", help="The condition that every other one is compared with."
)
@click.option(
    "--alpha",
    type=options.number("alpha"),
    default=0.05,
    show_default=True,
    help="1 minus the coverage of each interval.",
)
@options.ledger_option
@options.hyperfine_exports
@options.report_option
@options.show_env_option
@options.output_options
def command(**given: Any) -> int:
    """Keep results of other tools in the ledger, and compare them as far as they allow.

    hyperfine, pyperf, Google Benchmark, pytest-benchmark, JMH, criterion (its folder), Go, ReBench,
    sysbench, or a CSV with the columns condition and value. Such a run has an ordinary interval,
    never a verdict: no coin of ours ordered it.
    """
    output = OutputOptions.from_options(given)
    now = time.time()
    imported = assemble(
        _named(given["files"], given["names"], given["form"]),
        judgement=Judgement(alpha=given["alpha"]),
        folder=os.getcwd(),
        now=now,
        baseline=given["baseline"],
    )
    with open_for_writing(output.ledger, durable=False) as ledger:
        record = ledger.read_run(
            ledger.record_import(
                imported.plan,
                imported.environment,
                imported.draws,
                imported.trials,
                imported.notices,
                now,
            )
        )
        earlier = ledger.same_commands(record)
    record, _ = reported(record, None, show_env=output.show_env)
    show(analyse_campaign(record), record, earlier, output)
    return 0


def _named(files: Sequence[str], names: Sequence[str], form: str | None) -> list[Named]:
    if names and len(names) != len(files):
        raise UnusableInput(
            f"there are {len(files)} files but {len(names)} names",
            hint="give --name once for each file, or not at all",
        )
    found: list[Named] = []
    for place, file in enumerate(files):
        name, reading = read_source(read_within_bounds(file, Path(file)), form, FORMATS)
        found.append(Named(file, names[place] if names else None, name, reading))
    return found
