"""``equipoise import``: import files of other tools as a run of the ledger."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, typed_command
from equipoise.cli.completion import complete_files
from equipoise.cli.options import OutputOptions
from equipoise.cli.results import read_result, write_and_print
from equipoise.interop.formats import FORMATS
from equipoise.interop.reading import read_source, read_within_bounds
from equipoise.kinds.imported.assembly import SourceReading, assemble
from equipoise.ledger import open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Judgement


class ImportRequest(Struct, frozen=True, kw_only=True):
    """Options of `equipoise import`."""

    files: tuple[str, ...]
    format_name: str | None
    """Key of `FORMATS`; ``None`` to find the format of each file."""
    names: tuple[str, ...]
    """Names of the conditions, one for each file, or none."""
    baseline: str | None
    alpha: float
    output: OutputOptions


@click.command(
    "import",
    cls=CommandRecorder,
    epilog="Example: equipoise import -n old -n new old.json new.json",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE …", shell_complete=complete_files)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    help="Format of the files; by default it is found from their content.",
)
@click.option(
    "-n",
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name of the condition in a file, once for each file; these conditions are compared.",
)
@click.option(
    "--baseline", metavar="NAME", help="The condition with which all others are compared."
)
@options.number_option("--alpha", default=0.05, help="1 minus the coverage of each interval.")
@options.ledger_option
@options.hyperfine_exports
@options.report_option
@options.show_env_option
@options.output_options
@options.pass_request(ImportRequest)
def command(request: ImportRequest) -> int:
    """Keep results of other tools in the ledger, and compare them without a verdict.

    The tools are hyperfine, pyperf, Google Benchmark, pytest-benchmark, JMH, criterion (its
    folder), divan, Go, Catch2, nanobench, ReBench and sysbench; a CSV has the columns condition and
    value. Such a run has an ordinary interval, never a verdict, because no coin of Equipoise
    ordered its trials.
    """
    output = request.output.checked()
    imported = assemble(
        list(_file_readings(request.files, request.names, request.format_name)),
        judgement=Judgement(alpha=request.alpha),
        folder=os.getcwd(),
        now=time.time(),
        baseline=request.baseline,
    )
    imported = replace(imported, plan=replace(imported.plan, command_line=typed_command()))
    with open_for_writing(output.ledger, durable=False) as ledger:
        result = read_result(ledger.record_import(imported), ledger, output)
    write_and_print(result, output)
    return 0


def _file_readings(
    files: Sequence[str], names: Sequence[str], format_name: str | None
) -> Iterator[SourceReading]:
    """Yield the content of each file, with the name that the user gave to the file's condition."""
    if names and len(names) != len(files):
        raise UnusableInput(
            f"there are {len(files)} files but {len(names)} names",
            hint="give --name once for each file, or remove all names",
        )
    for file, given_name in zip_longest(files, names):
        source = read_within_bounds(file, Path(file))
        yield SourceReading(file, given_name, *read_source(source, format_name, FORMATS))
