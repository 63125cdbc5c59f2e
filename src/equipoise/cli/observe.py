"""``equipoise observe``: the effect of a change from logs, by matching."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.command_line import Remembering, command_line
from equipoise.cli.conclusion_forms import Told, check_conclusion, write_conclusion
from equipoise.cli.output_file import check_folder, write_file
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.model.observation_result import ObservationResult
    from equipoise.observation.question import Question

NONE = "none"


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
    help="The column that says what ran, and its two values.",
)
@click.option("--outcome", required=True, metavar="COLUMN", help="What it cost, such as wall_s.")
@click.option(
    "--covariates",
    metavar="A,B,C",
    callback=options.names_in,
    help="What else may explain it; by default every column that can.",
)
@click.option(
    "--exact", metavar="A,B", callback=options.names_in, help="Columns that must be equal."
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    callback=options.names_in,
    help="Whose rows are not independent (time, day, host, job: known by name); 'none'.",
)
@click.option(
    "--method",
    type=click.Choice(["genetic", "mahalanobis", "propensity"]),
    default="genetic",
    show_default=True,
)
@click.option("--difference", is_flag=True, help="No ratio: the outcome may be 0 or below.")
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
    help="Columns that the candidate changes itself, beside the known ones.",
)
@click.option(
    "--allow",
    metavar="A,B",
    callback=options.names_in,
    help="What may differ between the environments of a ledger's campaigns.",
)
@click.option("--leave-others-out", is_flag=True, help="Leave rows of other versions out.")
@click.option("--one-unit", is_flag=True, help="The outcomes are in one unit: do not check.")
@click.option(
    "--strata",
    metavar="COLUMN",
    help="Read, match and judge the rows of one value at a time, for what does not fit in memory.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", show_default="all cores")
@options.ledger_option
@options.figures_option
@options.report_option
@options.show_env_option
@options.output_options
def command(**given: Any) -> int:
    """Compare what ran in FILE among comparable rows: the effect of a change from a log.

    FILE is a table (CSV or Parquet), a ledger's file, or a RUN of the ledger, whose trials are
    rows then. Where no comparison holds, the answer is refused (exit status 2), with what would be
    needed for one.
    """
    from equipoise.cli.observed_environments import cautions_of, refuse_unlike
    from equipoise.cli.observed_log import read_log
    from equipoise.cli.work_bar import work_in_words
    from equipoise.observation.analysis import observe

    _check_outputs(given)
    if given["strata"] is not None:
        return _answered(_by_strata(given), given)
    log = read_log(
        given["file"],
        given["ledger_path"],
        given["treatment"][0],
        show_env=given["show_env"],
    )
    question, allowed = _question(given), given["allow"] or ()
    named = None if question.covariates is None else (*question.covariates, *question.exact)
    refuse_unlike(log.differing, named, allowed)
    with work_in_words(quiet=given["quiet"], color=not given["no_color"]) as tell:
        document = observe(
            log.without(allowed),
            question,
            source=log.source,
            left_out=log.left_out,
            told=cautions_of(log.differing, allowed),
            tell=tell,
        )
    return _answered(document, given)


def _by_strata(given: dict[str, Any]) -> ObservationResult:
    from equipoise.cli.observed_strata import read_strata
    from equipoise.cli.work_bar import work_in_words
    from equipoise.observation.strata import check_strata, observe_strata

    question, column = _question(given), given["strata"]
    check_strata(column, question)
    log = read_strata(given["file"], column, question)
    with work_in_words(quiet=given["quiet"], color=not given["no_color"]) as tell:
        return observe_strata(log, question, source=given["file"], tell=tell)


def _answered(document: ObservationResult, given: dict[str, Any]) -> int:
    _put_out(document, given)
    if document.refusal is not None:
        raise UnusableInput(document.refusal.summary, hint=document.refusal.hint)
    return 0


def _question(given: dict[str, Any]) -> Question:
    from equipoise.observation.question import Question

    column, values = given["treatment"]
    return Question(
        treatment=column,
        values=values,
        outcome=given["outcome"],
        covariates=given["covariates"],
        exact=given["exact"] or (),
        cluster=() if given["cluster"] == (NONE,) else given["cluster"],
        method=given["method"],
        ratio=not given["difference"],
        placebo_outcomes=given["placebo_outcome"] or (),
        placebo_period=given["placebo_period"],
        mediators=given["mediators"] or (),
        leave_others_out=given["leave_others_out"],
        one_unit=given["one_unit"],
        seed=given["seed"],
        threads=given["threads"],
    )


def _check_outputs(given: dict[str, Any]) -> None:
    """Find out what cannot be written before the work for it is done."""
    check_conclusion(Path(given["file"]), given["report_file"], given["figures"])
    if given["json_file"] not in (None, "-"):
        check_folder(Path(given["json_file"]))


def _put_out(document: ObservationResult, given: dict[str, Any]) -> None:
    from equipoise.report.json_document import encode

    write_conclusion(lambda: _told(document), given["report_file"], given["figures"])
    if given["json_file"] == "-":
        sys.stdout.buffer.write(encode(document) + b"\n")
        return
    if given["json_file"] is not None:
        write_file(Path(given["json_file"]), encode(document) + b"\n")
    if not given["quiet"]:
        from equipoise.report.observed import print_observed

        print_observed(document, color=not given["no_color"])


def _told(document: ObservationResult) -> Told:
    from equipoise.figures.observed import observed_figures
    from equipoise.report.observed_conclusion import observed_conclusion

    again = command_line(None)
    return Told(observed_conclusion(document, again), lambda: observed_figures(document))
