"""``equipoise export``: write a campaign in a format for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from msgspec import Struct

from equipoise.analysis.display import records_for_display
from equipoise.cli import options
from equipoise.cli.completion import complete_runs
from equipoise.cli.ledger_slices import write_ledger_slice
from equipoise.cli.options.outputs import check_folder
from equipoise.cli.writing import render_documents, report_input_of, write_file
from equipoise.interop import trials
from equipoise.interop.formats import hyperfine
from equipoise.interop.series import bencher
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.why.result import result_of, with_experiment


def _hyperfine_json(result: ResultDocument) -> bytes:
    if not any(row.wall_s is not None for row in result.trials):
        raise UnusableInput(
            f"run {result.run.id} has no wall times, and hyperfine's format has nothing else",
            hint="use another format: --format csv, parquet, json or bmf",
        )
    return hyperfine.to_json(result)


TRIAL_FORMATS: dict[str, Callable[[ResultDocument], bytes]] = {
    "hyperfine": _hyperfine_json,
    "csv": trials.to_csv,
    "parquet": trials.to_parquet,
    "json": trials.to_json,
    "bmf": bencher.to_metric_format,
}
"""Functions that write the trials of a result, by the name of the format."""
REPORT_FORMATS = {"markdown": ".md", "latex": ".tex"}
"""Formats of `equipoise report`, with their file extensions."""
FORMAT_BY_EXTENSION = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".parquet": "parquet",
    ".tex": "latex",
}


class ExportRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise export`."""

    run: str
    output: Path
    format: str | None
    ledger_slice: bool
    """Whether to write a ledger with only the run and the runs that its result needs."""
    show_env: bool
    ledger: Path


@click.command("export", epilog="Example: equipoise export last -o trials.csv")
@click.argument("run", default="last", shell_complete=complete_runs)
@options.file_option(
    "-o",
    "--output",
    required=True,
    help="File to write; without --format, its extension selects the format: "
    f"{', '.join(FORMAT_BY_EXTENSION)}.",
)
@click.option(
    "--format",
    type=click.Choice([*TRIAL_FORMATS, *REPORT_FORMATS]),
    help="csv, parquet and json: a row for each trial; hyperfine: as its --export-json; "
    "bmf: medians in Bencher Metric Format; markdown, latex: the verdict and a row for each "
    "condition, as `equipoise report` writes them.",
)
@options.flag(
    "--ledger-slice",
    help="Write a ledger with RUN and the runs that its result needs, for `equipoise merge`.",
)
@options.show_env_option
@options.ledger_option
@options.pass_request(ExportRequest)
def command(request: ExportRequest) -> int:
    """Write RUN (an id, its beginning, or 'last') for other programs.

    csv, parquet and json have a row for each trial, with columns for the levels of factors, the
    covariates, and the metrics that the workload reported.
    """
    output = request.output
    if request.ledger_slice:
        if request.format is not None or request.show_env:
            raise UnusableInput(
                "--ledger-slice cannot be combined with --format or --show-env: a ledger has one "
                "format and all values",
                hint="remove --format and --show-env",
            )
        with open_for_reading(request.ledger) as ledger:
            write_ledger_slice(ledger, request.run, output)
        return 0
    format_name = request.format or FORMAT_BY_EXTENSION.get(output.suffix.lower())
    if format_name is None:
        suffix = output.suffix
        extension = f"the extension '{suffix}'" if suffix else "a name without extension"
        raise UnusableInput(
            f"{output}: {extension} does not select a format",
            hint=f"end the name in {', '.join(FORMAT_BY_EXTENSION)}, or add --format csv",
        )
    check_folder(output)
    with open_for_reading(request.ledger) as ledger:
        records = with_experiment(ledger.read_run(request.run), ledger)
    records = records_for_display(records, show_env=request.show_env)
    write_file(output, _exported_content(result_of(*records), records[0], format_name))
    return 0


def _exported_content(result: ResultDocument, record: RunRecord, format_name: str) -> bytes:
    if format_name in TRIAL_FORMATS:
        return TRIAL_FORMATS[format_name](result)
    from equipoise.report.builders.result import campaign_documents

    report_input = report_input_of(result, record, with_figures=False)
    return render_documents(
        campaign_documents([report_input]), REPORT_FORMATS[format_name]
    ).encode()
