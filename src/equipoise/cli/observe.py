"""``equipoise observe``: the effect of a change from logs, by matching."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.command_line import Remembering, command_line
from equipoise.cli.output_files import check_folder, write_file
from equipoise.cli.report_files import check_report_files, write_report_files
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.figures.gallery import Figure
    from equipoise.model.observation_result import ObservationResult
    from equipoise.observation.matching import Progress
    from equipoise.observation.question import Question


def _assignment(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, str] | None:
    if value is None:
        return None
    column, equals, rest = value.partition("=")
    if not (column and equals and rest):
        raise click.BadParameter(f"'{value}' is not {option.metavar}.", context, option)
    return column, rest


@click.command(
    "observe",
    cls=Remembering,
    epilog="Example: equipoise observe ci.csv --treatment version=2.0:1.0 --outcome wall_s "
    "--covariates load,cache --exact host_type --cluster day",
)
@click.argument("file", metavar="FILE | RUN")
@click.option(
    "--treatment",
    required=True,
    metavar="COLUMN=CANDIDATE:BASELINE",
    callback=_assignment,
    help="Column that names the version that ran, and its two values.",
)
@click.option(
    "--outcome", required=True, metavar="COLUMN", help="Column with the cost, such as wall_s."
)
@click.option(
    "--covariates",
    metavar="A,B,C",
    callback=options.names_in,
    help="Columns that may explain the difference; by default every usable one.",
)
@click.option(
    "--exact",
    metavar="A,B",
    callback=options.names_in,
    help="Columns that must be equal in matched rows.",
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    callback=options.names_in,
    help="Column that dependent rows share, such as day, host or job; 'none'.",
)
@click.option(
    "--method",
    type=click.Choice(["genetic", "mahalanobis", "propensity"]),
    default="genetic",
    show_default=True,
)
@click.option("--difference", is_flag=True, help="Report no ratio: the outcome may be 0 or less.")
@click.option(
    "--placebo-outcome",
    metavar="A,B",
    callback=options.names_in,
    help="Columns that the candidate cannot have changed.",
)
@click.option(
    "--placebo-period",
    metavar="COLUMN=VALUE",
    callback=_assignment,
    help="Rows that the candidate cannot have reached yet.",
)
@click.option(
    "--mediators",
    metavar="A,B",
    callback=options.names_in,
    help="Columns that the candidate itself changes, in addition to the known ones.",
)
@click.option(
    "--allow",
    metavar="A,B",
    callback=options.names_in,
    help="Differences that are allowed between the environments of a ledger's campaigns.",
)
@click.option("--leave-others-out", is_flag=True, help="Leave out the rows of other versions.")
@click.option("--one-unit", is_flag=True, help="Do not check that all outcomes have one unit.")
@click.option(
    "--strata",
    metavar="COLUMN",
    help="Read, match and judge the rows of one value at a time, to save memory.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", show_default="all cores")
@options.ledger_option
@options.figures_option
@options.report_option
@options.show_env_option
@options.output_options
def command(**values: Any) -> int:
    """Estimate the effect of a change from a log, among comparable rows.

    FILE is a table (CSV or Parquet), a ledger's file, or a RUN of the ledger: its trials are then
    the rows. Where no comparison holds, Equipoise refuses to answer (exit status 2), and says
    which rows would be needed.
    """
    from equipoise.cli.progress import work_in_sentences

    _check_outputs(values)
    question = _question(values)
    with work_in_sentences(quiet=values["quiet"], color=not values["no_color"]) as progress:
        observe = _observe_log if values["strata"] is None else _observe_strata
        result = observe(question, values, progress)
    _write(result, values)
    if result.refusal is not None:
        raise UnusableInput(result.refusal.summary, hint=result.refusal.hint)
    return 0


def _question(values: dict[str, Any]) -> Question:
    from equipoise.observation.question import Question

    column, versions = values["treatment"]
    return Question(
        treatment=column,
        values=versions,
        outcome=values["outcome"],
        covariates=values["covariates"],
        exact=values["exact"] or (),
        cluster=() if values["cluster"] == ("none",) else values["cluster"],
        method=values["method"],
        ratio=not values["difference"],
        placebo_outcomes=values["placebo_outcome"] or (),
        placebo_period=values["placebo_period"],
        mediators=values["mediators"] or (),
        leave_others_out=values["leave_others_out"],
        one_unit=values["one_unit"],
        seed=values["seed"],
        threads=values["threads"],
    )


def _observe_log(
    question: Question, values: dict[str, Any], progress: Progress
) -> ObservationResult:
    from equipoise.cli.observed_log import read_log
    from equipoise.observation.analysis import observe

    log = read_log(
        values["file"], values["ledger_path"], question.treatment, show_env=values["show_env"]
    )
    matched_on = None
    if question.covariates is not None:
        matched_on = (*question.covariates, *question.exact)
    columns, warnings = log.allowing(values["allow"] or (), matched_on)
    return observe(
        columns,
        question,
        source=log.source,
        left_out=log.left_out,
        warnings=warnings,
        progress=progress,
    )


def _observe_strata(
    question: Question, values: dict[str, Any], progress: Progress
) -> ObservationResult:
    from equipoise.cli.table_file import read_strata
    from equipoise.observation.strata import check_strata, observe_strata

    check_strata(values["strata"], question)
    log = read_strata(values["file"], values["strata"], question)
    return observe_strata(log, question, source=values["file"], progress=progress)


def _check_outputs(values: dict[str, Any]) -> None:
    """Check that every output can be written, before the work is done."""
    check_report_files(Path(values["file"]), values["report_file"], values["figures"])
    if values["json_file"] not in (None, "-"):
        check_folder(Path(values["json_file"]))


def _write(result: ObservationResult, values: dict[str, Any]) -> None:
    from equipoise.report.builders.observation import observation_document
    from equipoise.report.json_document import encode

    document = observation_document(result, command_line(None), lambda: _figures(result))
    write_report_files(document, values["report_file"], values["figures"])
    if values["json_file"] == "-":
        sys.stdout.buffer.write(encode(result) + b"\n")
        return
    if values["json_file"] is not None:
        write_file(Path(values["json_file"]), encode(result) + b"\n")
    if not values["quiet"]:
        from equipoise.report.renderers.terminal import print_document

        print_document(document, color=not values["no_color"])


def _figures(result: ObservationResult) -> Iterator[Figure]:
    from equipoise.figures.estimates import observed_figures

    return observed_figures(result)
