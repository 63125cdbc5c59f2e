"""``equipoise export``: a campaign for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.output_options import check_folder, rendered, report_of, write_file
from equipoise.cli.results import reported
from equipoise.interop import bmf, trials
from equipoise.interop.formats import hyperfine
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.why.campaigns import latest_experiment, result_of


def _to_hyperfine(document: ResultDocument) -> bytes:
    if not any(row.wall_s is not None for row in document.trials):
        raise UnusableInput(
            f"run {document.run.id} has no wall times, and hyperfine's form has nothing else",
            hint="take --format csv, parquet, json or bmf",
        )
    return hyperfine.to_json(document)


FORMATS: dict[str, Callable[[ResultDocument], bytes]] = {
    "hyperfine": _to_hyperfine,
    "csv": trials.to_csv,
    "parquet": trials.to_parquet,
    "json": trials.to_json,
    "bmf": bmf.to_bmf,
}
REPORTS = {"markdown": ".md", "latex": ".tex"}
"""Forms of `equipoise report`."""
BY_ENDING = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".parquet": "parquet",
    ".tex": "latex",
}


@click.command("export", epilog="Example: equipoise export last -o trials.csv")
@click.argument("run", default="last")
@options.file_option(
    "-o",
    "--output",
    required=True,
    help=f"Where to; its ending says how, if --format does not: {', '.join(BY_ENDING)}.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS, *REPORTS]),
    help="csv, parquet and json: a row for each trial; hyperfine: as its --export-json; "
    "bmf: medians in Bencher Metric Format; markdown, latex: the verdict and a row for each "
    "condition, as `equipoise report` writes them.",
)
@options.show_env_option
@options.ledger_option
def command(**arguments: Any) -> int:
    """Write RUN (an id, its beginning, or 'last') for other programs.

    csv, parquet and json hold every trial, one row each: levels, covariates and the workload's
    own metrics are columns of their own.
    """
    output: Path = arguments["output"]
    form: str | None = arguments["form"] or BY_ENDING.get(output.suffix.lower())
    if form is None:
        raise UnusableInput(
            f"{output}: a run cannot be written as '{output.suffix}'",
            hint=f"end the name in {', '.join(BY_ENDING)}, or say --format",
        )
    check_folder(output)
    with open_for_reading(arguments["ledger"]) as ledger:
        record = ledger.read_run(arguments["run"])
        experiment = latest_experiment(record, ledger)
    record, experiment = reported(record, experiment, show_env=arguments["show_env"])
    write_file(output, _content(result_of(record, experiment), record, form))
    return 0


def _content(document: ResultDocument, record: RunRecord, form: str) -> bytes:
    if form in FORMATS:
        return FORMATS[form](document)
    from equipoise.report.builders.result import campaign_documents

    report = report_of(document, record, figures=False)
    return rendered(campaign_documents([report]), REPORTS[form]).encode()
