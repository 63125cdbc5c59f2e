"""``equipoise observe``: the effect of a change from logs, by matching.

A log is a table, or the trials of a ledger as rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise.analysis.display import records_for_display
from equipoise.analysis.reference import environment_differences, flat_facts
from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, command_line
from equipoise.cli.completion import complete_runs_and_files
from equipoise.cli.options import ClusterOptions, OutputOptions
from equipoise.cli.options.tables import missing_option
from equipoise.cli.results import Differing, check_allowed, difference_warning
from equipoise.cli.writing import write_output
from equipoise.cluster.address import FORMS
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning, RunRecord, Trial
from equipoise_matching.tables.reading import ENDINGS, is_parquet, read_file

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


class Clusters(NamedTuple):
    """Clusters that ``--cluster`` names: of rows, and a cluster of hosts."""

    columns: tuple[str, ...] | None
    """``None`` for a column with a known name, ``("none",)`` for independent rows."""
    address: str | None


def _clusters(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> Clusters:
    addresses = [value for value in values if value.startswith(_ADDRESSES)]
    columns = [value for value in values if not value.startswith(_ADDRESSES)]
    if len(addresses) > 1 or len(columns) > 1:
        raise click.BadParameter(
            "give at most one value with columns (A,B) and one with an address.", context, option
        )
    names = None if not columns else options.split_names(context, option, columns[0])
    return Clusters(names, *addresses or (None,))


class ObserveRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise observe`."""

    file: str
    """A table, a ledger, or a run of one."""
    treatment: tuple[str, str | None]
    """Column that names the version, and ``CANDIDATE:BASELINE``."""
    outcome: str
    covariates: tuple[str, ...] | None
    exact: tuple[str, ...]
    clusters: Clusters
    insecure: bool
    tls_ca: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    method: str
    difference: bool
    placebo_outcome: tuple[str, ...]
    placebo_period: tuple[str, str] | None
    mediators: tuple[str, ...]
    allow: tuple[str, ...]
    leave_others_out: bool
    missing: Literal["refuse", "drop", "indicator"] | None
    unit: str | None
    one_unit: bool
    strata: str | None
    seed: int
    threads: int | None
    output: OutputOptions

    def access(self) -> ClusterAccess | None:
        """Return the cluster of hosts whose workers judge the strata; ``None`` without one.

        Raise `UnusableInput` if the address is none or unprotected, or there are no strata.
        """
        tls = (self.tls_ca, self.tls_cert, self.tls_key)
        access = ClusterOptions(self.clusters.address, self.insecure, *tls).access()
        if access is not None and self.strata is None:
            raise UnusableInput(
                f"--cluster {access.address.text} goes with --strata only: workers judge strata",
                hint="name a column with --strata, or leave the address out",
            )
        return access

    def question(self) -> Question:
        """Return the question that is put to the log."""
        from equipoise_matching.observation.question import NO_CLUSTERS, Question

        column, versions = self.treatment
        columns = self.clusters.columns
        return Question(
            treatment=column,
            values=versions,
            outcome=self.outcome,
            covariates=self.covariates,
            exact=self.exact,
            cluster=() if columns == (NO_CLUSTERS,) else columns,
            method=self.method,
            ratio=not self.difference,
            placebo_outcomes=self.placebo_outcome,
            placebo_period=self.placebo_period,
            mediators=self.mediators,
            leave_others_out=self.leave_others_out,
            one_unit=self.one_unit,
            unit=self.unit or "rows",
            seed=self.seed,
            threads=self.threads,
        )


@click.command(
    "observe",
    cls=CommandRecorder,
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
    by_default=(),
    help="Columns that must be equal in matched rows.",
)
@click.option(
    "--cluster",
    "clusters",
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
    by_default=(),
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
    by_default=(),
    help="Columns that the candidate itself changes, in addition to the known ones.",
)
@options.names_option(
    "--allow",
    by_default=(),
    help="Differences that are allowed between the environments of a ledger's campaigns.",
)
@options.flag("--leave-others-out", help="Leave out the rows of other versions.")
@missing_option(show_default="refuse; without --covariates, leave the column out, with a warning")
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
@options.pass_request(ObserveRequest)
def command(request: ObserveRequest) -> int:
    """Estimate the effect of a change from a log, among comparable rows.

    FILE is a table (CSV, Parquet, a folder of Parquet files), a ledger's file, or a RUN of the
    ledger: its trials are then the rows. Where no comparison holds, Equipoise refuses to answer
    (exit status 2), and says which rows would be needed.
    """
    from equipoise.cli.work_bars import status_line
    from equipoise.report.builders.matching import observation_document
    from equipoise.report.json_document import encode

    output = request.output.checked(source=Path(request.file))
    if request.strata is not None and request.missing not in (None, "refuse"):
        raise UnusableInput(
            f"--strata and --missing {request.missing} do not go together",
            hint="fill in or leave out the rows before, or observe without --strata",
        )
    access, question = request.access(), request.question()
    with status_line(quiet=output.quiet, color=output.color) as progress:
        if request.strata is None:
            result = _observe_log(question, request, progress)
        else:
            result = _observe_strata(question, request.file, request.strata, access, progress)
    document = observation_document(result, command_line())
    write_output(document, lambda: encode(result) + b"\n", output)
    if result.refusal is not None:
        raise UnusableInput(result.refusal.summary, hint=result.refusal.hint)
    return 0


def _observe_log(
    question: Question, request: ObserveRequest, progress: Progress
) -> ObservationResult:
    from equipoise.cli.observe import read_log
    from equipoise_matching.observation.analysis import observe
    from equipoise_matching.tables.missing import complete_log
    from equipoise_matching.warning import AnalysisWarning

    output = request.output
    log = read_log(request.file, output.ledger, question.treatment, show_env=output.show_env)
    named = question.covariates
    matched_on = None if named is None else (*named, *question.exact)
    columns, warnings = log.allowing(request.allow, matched_on)
    if request.unit is None:
        question = replace(question, unit=log.unit)
    complete = complete_log(columns, question, request.missing)
    return observe(
        complete.columns,
        complete.question,
        source=log.source,
        left_out={**log.left_out, **complete.left_out},
        warnings=(
            *(AnalysisWarning(warning.code, warning.summary, warning.hint) for warning in warnings),
            *complete.warnings,
        ),
        progress=progress,
    )


def _observe_strata(
    question: Question,
    source: str,
    column: str,
    access: ClusterAccess | None,
    progress: Progress,
) -> ObservationResult:
    from equipoise_matching.observation.strata import check_strata, observe_strata
    from equipoise_matching.tables.strata import find_strata

    check_strata(column, question)
    log = find_strata(source, column, question, progress)
    if access is None:
        return observe_strata(log, question, source=source, progress=progress)
    from equipoise.cluster.connection import cluster_client
    from equipoise.cluster.strata import DaskWorkers, judge_on_workers

    with cluster_client(access) as client:
        judge = judge_on_workers(DaskWorkers(client))
        return observe_strata(log, question, source=source, judge=judge, progress=progress)


ACCOUNTED = (
    *("wall_s", "user_s", "sys_s", "max_rss_bytes", "minor_faults", "major_faults"),
    *("voluntary_switches", "involuntary_switches"),
)
"""Metrics of each trial that the launcher measures."""
PREFIX = "environment_"


class ObservedLog(Struct, frozen=True):
    """Columns of a log, and what differs between the environments of its campaigns."""

    source: str
    columns: dict[str, NDArray[Any]]
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of trials that are not rows, by reason."""
    differing: Differing = field(default_factory=dict)
    unit: str = "rows"
    """Plural noun for the rows."""

    def allowing(
        self, allowed: Sequence[str], matched_on: Sequence[str] | None
    ) -> tuple[dict[str, NDArray[Any]], tuple[CampaignWarning, ...]]:
        """Return the columns without the differences that are allowed, and a warning of each.

        Raise `UnusableInput` if the campaigns differ in something that is neither matched on nor
        allowed.

        Parameters
        ----------
        matched_on
            Columns that are named to be matched on; ``None`` if all usable ones are.
        """
        unknown = [name for name in allowed if name not in self.differing]
        if unknown:
            raise UnusableInput(
                f"--allow: {', '.join(unknown)} does not differ between the campaigns",
                hint=f"these differ: {', '.join(self.differing) or 'none'}",
            )
        instead = f"--exact {PREFIX}{{name}} compares within each"
        if matched_on is not None:
            handled = {*allowed, *(name.removeprefix(PREFIX) for name in matched_on)}
            check_allowed(self.differing, handled, instead)
        warnings = tuple(
            difference_warning(name, self.differing[name], instead.format(name=name))
            for name in allowed
        )
        dropped = {PREFIX + name for name in allowed}
        columns = {name: values for name, values in self.columns.items() if name not in dropped}
        return columns, warnings


def read_log(name: str, ledger_path: Path, treatment: str, *, show_env: bool) -> ObservedLog:
    """Read a table (by its ending), a ledger's file with all its campaigns, or one campaign.

    A folder that holds Parquet files is a table, too.

    Raise `UnusableInput` if there is no such file or campaign, or it has no row.

    Parameters
    ----------
    treatment
        Column that names the version: its values are names, even if they look like numbers.
    show_env
        Whether names keep the values of environment variables.
    """
    path = Path(name)
    if name.lower().endswith(ENDINGS) or is_parquet(path):
        return ObservedLog(name, read_file(path, (treatment,)))
    if path.is_file():
        with open_for_reading(path) as ledger:
            records = [ledger.read_run(run.id) for run in ledger.runs()]
        return _trials_as_rows(records_for_display(records, show_env=show_env), name)
    if path.suffix:
        raise UnusableInput(
            f"{name}: there is no such file",
            hint=f"name a table ({', '.join(ENDINGS)}), a ledger's file, or a RUN of the ledger",
        )
    with open_for_reading(ledger_path) as ledger:
        record = ledger.read_run(name)
    return _trials_as_rows(records_for_display((record,), show_env=show_env), record.id)


def _trials_as_rows(records: Sequence[RunRecord], source: str) -> ObservedLog:
    """Return the measured trials of campaigns as columns.

    ``run``, ``study``, ``boot``, ``day`` (UTC), ``started_at`` (seconds), ``block`` (with its
    run), ``position``, ``condition``, the launcher's measurements, and ``level_<factor>``,
    ``covariate_<name>`` and ``metric_<name>`` as ``equipoise export`` names them;
    ``environment_<name>`` for each difference between the environments. A value that a trial
    lacks is missing.
    """
    left_out: Counter[str] = Counter()
    differing = _differing_environments(records)
    rows: list[dict[str, Any]] = []
    for place, record in enumerate(records):
        environment = {PREFIX + name: values[place] for name, values in differing.items()}
        for trial in record.trials:
            reason = _reason_left_out(trial)
            if reason is None:
                rows.append({**_row(record, trial), **environment})
            else:
                left_out[reason] += 1
    if not rows:
        raise UnusableInput(f"{source}: no measured trial succeeded", hint="name another campaign")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return ObservedLog(source, columns, dict(left_out), differing, "runs")


def _differing_environments(records: Sequence[RunRecord]) -> Differing:
    """Return the differences between the environments, with the value of each campaign."""
    names = dict.fromkeys(
        difference.name
        for record in records[1:]
        for difference in environment_differences(records[0].environment, record.environment)
    )
    facts = [dict(flat_facts(record.environment)) for record in records]
    return {name: tuple(str(known.get(name, "unknown")) for known in facts) for name in names}


def _reason_left_out(trial: Trial) -> str | None:
    if trial.phase != "measured" or trial.washout:
        return "a warm-up or wash-out"
    if trial.timed_out:
        return "timed out"
    return None if trial.failure is None else "failed"


def _row(record: RunRecord, trial: Trial) -> dict[str, Any]:
    condition = record.plan.conditions[trial.condition]
    return {
        "run": record.id,
        "study": record.plan.study,
        "boot": str(record.environment.get("boot_id") or "unknown"),
        "day": _day(trial.started_at),
        "started_at": trial.started_at,
        "block": f"{record.id}/{trial.block}",
        "position": trial.position,
        "condition": condition.name,
        **{f"level_{factor}": level for factor, level in condition.levels.items()},
        **{name: getattr(trial.accounting, name) for name in ACCOUNTED},
        **{f"covariate_{name}": value for name, value in trial.covariates.items()},
        **{
            f"metric_{sample.metric}": sample.value
            for sample in trial.samples
            if sample.iteration is None
        },
    }


def _day(seconds: float) -> str | None:
    """Return the day of a moment; ``None`` for a moment outside the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _column(values: list[Any]) -> NDArray[Any]:
    """Return numbers, with NaN for missing ones, or else texts."""
    if all(value is None or isinstance(value, int | float) for value in values):
        return np.array(values, dtype=np.float64)
    return np.array(values, dtype=object)
