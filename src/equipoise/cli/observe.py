"""``equipoise observe``: the effect of a change from logs, by matching."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from equipoise.cli import options
from equipoise.cli.command_line import Remembering, command_line
from equipoise.cli.completing import complete_runs_and_files
from equipoise.cli.output_options import OutputOptions, write_output
from equipoise.cluster.address import FORMS
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.cluster.connection import ClusterAccess
    from equipoise_matching.observation.matching import Progress
    from equipoise_matching.observation.question import Question
    from equipoise_matching.observation.result import ObservationResult

_ADDRESSES = ("tcp://", "tls://", "ssh:", "local:")
"""How the address of a cluster of hosts begins, and no column that ``--cluster`` takes."""


def _assignment(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, str] | None:
    if value is None:
        return None
    column, equals, rest = value.partition("=")
    if not (column and equals and rest):
        raise click.BadParameter(f"'{value}' is not {option.metavar}.", context, option)
    return column, rest


def _treatment(
    context: click.Context, option: click.Parameter, value: str
) -> tuple[str, str | None]:
    return _assignment(context, option, value) or ("", None) if "=" in value else (value, None)


class _Clusters(NamedTuple):
    """What ``--cluster`` names: clusters of rows, and a cluster of hosts."""

    columns: tuple[str, ...] | None
    """``None`` for a column with a known name, ``("none",)`` for independent rows."""
    address: str | None


def _clusters(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> _Clusters:
    addresses = [value for value in values if value.startswith(_ADDRESSES)]
    columns = [value for value in values if not value.startswith(_ADDRESSES)]
    if len(addresses) > 1 or len(columns) > 1:
        raise click.BadParameter(
            "give at most one value with columns (A,B) and one with an address.", context, option
        )
    names = None if not columns else options.names_in(context, option, columns[0])
    return _Clusters(names, *addresses or (None,))


@click.command(
    "observe",
    cls=Remembering,
    epilog="Example: equipoise observe ci.csv --treatment version=2.0:1.0 --outcome wall_s "
    "--covariates load,cache --exact host_type --cluster day",
)
@click.argument("file", metavar="FILE | RUN", shell_complete=complete_runs_and_files)
@click.option(
    "--treatment",
    required=True,
    metavar="COLUMN[=CANDIDATE:BASELINE]",
    callback=_treatment,
    help="Column that names the version that ran, and its two values. Of two versions the later "
    "one is the candidate; a column of 0 and 1, yes and no or old and new tells it, too.",
)
@click.option(
    "--outcome", required=True, metavar="COLUMN", help="Column with the cost, such as wall_s."
)
@options.names_option(
    "--covariates",
    metavar="A,B,C",
    help="Columns that may explain the difference; by default every usable one.",
)
@options.names_option(
    "--exact",
    help="Columns that must be equal in matched rows.",
)
@click.option(
    "--cluster",
    metavar="COLUMN | ADDRESS",
    multiple=True,
    callback=_clusters,
    help="Column that dependent rows share, such as day, host or job; 'none'. Given once more with "
    f"an address ({FORMS}): judge the strata on the workers of that Dask cluster, which see the "
    "same files. Whoever answers there can run code as you.",
)
@options.cluster_access_options
@click.option(
    "--method",
    type=click.Choice(["genetic", "mahalanobis", "propensity"]),
    default="genetic",
    show_default=True,
)
@options.flag("--difference", help="Report no ratio: the outcome may be 0 or less.")
@options.names_option(
    "--placebo-outcome",
    help="Columns that the candidate cannot have changed.",
)
@click.option(
    "--placebo-period",
    metavar="COLUMN=VALUE",
    callback=_assignment,
    help="Rows that the candidate cannot have reached yet.",
)
@options.names_option(
    "--mediators",
    help="Columns that the candidate itself changes, in addition to the known ones.",
)
@options.names_option(
    "--allow",
    help="Differences that are allowed between the environments of a ledger's campaigns.",
)
@options.flag("--leave-others-out", help="Leave out the rows of other versions.")
@options.missing_option(
    show_default="refuse; without --covariates, leave the column out, with a warning"
)
@click.option(
    "--unit",
    metavar="NAME",
    show_default="rows; runs of a ledger",
    help="What a row is, in the plural, for the sentences: people, builds.",
)
@options.flag("--one-unit", help="Do not check that all outcomes have one unit.")
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
def command(**arguments: Any) -> int:
    """Estimate the effect of a change from a log, among comparable rows.

    FILE is a table (CSV, Parquet, a folder of Parquet files), a ledger's file, or a RUN of the
    ledger: its trials are then the rows. Where no comparison holds, Equipoise refuses to answer
    (exit status 2), and says which rows would be needed.
    """
    from equipoise.cli.work_bars import work_in_sentences
    from equipoise.report.builders.observation import observation_document
    from equipoise.report.json_document import encode

    output = OutputOptions.from_options(arguments, source=Path(arguments["file"]))
    if arguments["strata"] is not None and arguments["missing"] not in (None, "refuse"):
        raise UnusableInput(
            f"--strata and --missing {arguments['missing']} do not go together",
            hint="fill in or leave out the rows before, or observe without --strata",
        )
    access = options.access_of({**arguments, "cluster": arguments["cluster"].address})
    if access is not None and arguments["strata"] is None:
        raise UnusableInput(
            f"--cluster {access.address.text} goes with --strata only: workers judge strata",
            hint="name a column with --strata, or leave the address out",
        )
    question = _question(arguments)
    with work_in_sentences(quiet=output.quiet, color=output.color) as progress:
        if arguments["strata"] is None:
            result = _observe_log(question, arguments, progress)
        else:
            result = _observe_strata(question, arguments, access, progress)
    document = observation_document(result, command_line(None))
    write_output(document, lambda: encode(result) + b"\n", output)
    if result.refusal is not None:
        raise UnusableInput(result.refusal.summary, hint=result.refusal.hint)
    return 0


def _question(arguments: dict[str, Any]) -> Question:
    from equipoise_matching.observation.question import Question

    column, versions = arguments["treatment"]
    return Question.among(
        {
            **arguments,
            "treatment": column,
            "values": versions,
            "cluster": arguments["cluster"].columns,
            "ratio": not arguments["difference"],
            "placebo_outcomes": arguments["placebo_outcome"],
            "unit": arguments["unit"] or "rows",
        }
    )


def _observe_log(
    question: Question, arguments: dict[str, Any], progress: Progress
) -> ObservationResult:
    from equipoise.cli.observed_log import read_log
    from equipoise_matching.observation.analysis import observe
    from equipoise_matching.tables.missing import complete_log
    from equipoise_matching.warning import AnalysisWarning

    show_env = arguments["show_env"]
    log = read_log(arguments["file"], arguments["ledger"], question.treatment, show_env=show_env)
    named = question.covariates
    matched_on = None if named is None else (*named, *question.exact)
    columns, warnings = log.allowing(arguments["allow"] or (), matched_on)
    if arguments["unit"] is None:
        question = replace(question, unit=log.unit)
    complete = complete_log(columns, question, arguments["missing"])
    return observe(
        complete.columns,
        complete.question,
        source=log.source,
        left_out={**log.left_out, **complete.left_out},
        warnings=(
            *(AnalysisWarning(one.code, one.summary, one.hint) for one in warnings),
            *complete.warnings,
        ),
        progress=progress,
    )


def _observe_strata(
    question: Question,
    arguments: dict[str, Any],
    access: ClusterAccess | None,
    progress: Progress,
) -> ObservationResult:
    from equipoise_matching.observation.strata import check_strata, observe_strata
    from equipoise_matching.tables.strata import find_strata

    source, column = arguments["file"], arguments["strata"]
    check_strata(column, question)
    log = find_strata(source, column, question, progress)
    if access is None:
        return observe_strata(log, question, source=source, progress=progress)
    from equipoise.cluster.connection import cluster_client
    from equipoise.cluster.strata import DaskWorkers, judge_on

    with cluster_client(access) as client:
        judge = judge_on(DaskWorkers(client))
        return observe_strata(log, question, source=source, judge=judge, progress=progress)
