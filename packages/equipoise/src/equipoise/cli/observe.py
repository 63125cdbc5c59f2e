"""``equipoise observe``: estimate the effect of a change from a log, by matching similar rows.

- A log is a table, or the trials of a ledger as rows. The version of a row was not drawn at random.
  Therefore each row of the candidate (the new version) is compared with similar rows of the
  baseline (the old version).
- A cluster of rows is a group of dependent rows, such as the rows of one day. A cluster of hosts is
  a Dask cluster, on whose workers strata are analysed. ``--cluster`` takes both.
- A fact is a value of the environment, such as the kernel, in which campaigns may differ.
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
from equipoise.cli.results import ValuesByFact, environment_warning, require_allowed
from equipoise.cli.writing import write_output
from equipoise.cluster.address import ADDRESS_FORMATS
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning, RunRecord, Trial
from equipoise_matching.tables.reading import ENDINGS, is_parquet, read_file

if TYPE_CHECKING:
    from equipoise.cluster.connection import ClusterAccess
    from equipoise_matching.observation.matching import Progress
    from equipoise_matching.observation.question import Question
    from equipoise_matching.observation.result import ObservationResult

_ADDRESS_PREFIXES = ("tcp://", "tls://", "ssh:", "local:")
"""Prefixes of the address of a cluster of hosts; other values of ``--cluster`` are columns."""


def _split_assignment(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, str] | None:
    """Split ``COLUMN=VALUE`` into the column and the value."""
    if value is None:
        return None
    column, equals, assigned_value = value.partition("=")
    if not (column and equals and assigned_value):
        raise click.BadParameter(f"'{value}' is not {option.metavar}.", context, option)
    return column, assigned_value


def _split_treatment(
    context: click.Context, option: click.Parameter, value: str
) -> tuple[str, str | None]:
    """Split ``COLUMN=CANDIDATE:BASELINE`` into the column and the versions, if it has versions."""
    if "=" not in value:
        return value, None
    return _split_assignment(context, option, value) or ("", None)


class ClusterValues(NamedTuple):
    """Values of ``--cluster``: columns that group dependent rows, or the address of hosts."""

    columns: tuple[str, ...] | None
    """Columns in which dependent rows have equal values; ``("none",)`` if rows are independent.
    ``None``: use a column with a known name, such as ``day``."""
    address: str | None
    """Address of a cluster of hosts; ``None`` if no value is an address."""


def _split_clusters(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> ClusterValues:
    """Separate the values that are columns from the value that is an address."""
    addresses = [value for value in values if value.startswith(_ADDRESS_PREFIXES)]
    column_lists = [value for value in values if not value.startswith(_ADDRESS_PREFIXES)]
    if len(addresses) > 1 or len(column_lists) > 1:
        raise click.BadParameter(
            "give at most one value with columns (A,B) and one with an address.", context, option
        )
    columns = None if not column_lists else options.split_names(context, option, column_lists[0])
    return ClusterValues(columns, *addresses or (None,))


class ObserveRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise observe`."""

    file: str
    """Path of a table or a ledger, or a run of the ledger."""
    treatment: tuple[str, str | None]
    """Column with the version of each row, and the two versions as ``CANDIDATE:BASELINE``."""
    outcome: str
    covariates: tuple[str, ...] | None
    exact: tuple[str, ...]
    """Columns in which matched rows must be equal."""
    clusters: ClusterValues
    hosts: ClusterOptions
    """Options of the connection to a cluster of hosts; ``clusters`` has the address."""
    method: str
    difference: bool
    """Whether to report a difference of outcomes instead of a ratio."""
    placebo_outcome: tuple[str, ...]
    """Columns that the candidate cannot have changed."""
    placebo_period: tuple[str, str] | None
    """Column and value of the rows from before the change."""
    mediators: tuple[str, ...]
    """Columns that the candidate itself changes."""
    allow: tuple[str, ...]
    """Facts of the environment in which campaigns may differ."""
    leave_others_out: bool
    """Whether to leave out the rows of other versions."""
    missing: Literal["refuse", "drop", "indicator"] | None
    unit: str | None
    """Plural noun for the rows."""
    one_unit: bool
    """Whether all outcomes have one unit, such as seconds, so that this is not checked."""
    strata: str | None
    """Column whose values are analysed one at a time."""
    seed: int
    threads: int | None
    output: OutputOptions

    def access(self) -> ClusterAccess | None:
        """Return the cluster of hosts that analyses the strata; ``None`` without ``--cluster``.

        Raise `UnusableInput` if the address is invalid or unprotected, or ``--strata`` is missing.
        """
        access = replace(self.hosts, cluster=self.clusters.address).access()
        if access is not None and self.strata is None:
            raise UnusableInput(
                f"--cluster {access.address.text} needs --strata: each worker analyses a stratum",
                hint=f"add --strata COLUMN, or remove --cluster {access.address.text}",
            )
        return access

    def question(self) -> Question:
        """Return the question that the log should answer."""
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
    callback=_split_treatment,
    help="Column with the version that ran, and the two versions. Without them, the later of two "
    "versions is the candidate; in a column of 0 and 1, no and yes, or old and new, the second.",
)
@click.option(
    "--outcome", required=True, metavar="COLUMN", help="Column with the cost, such as wall_s."
)
@options.names_option(
    "--covariates",
    metavar="A,B,C",
    help="Columns that may explain the difference; by default every usable column.",
)
@options.names_option("--exact", default=(), help="Columns in which matched rows must be equal.")
@click.option(
    "--cluster",
    "clusters",
    metavar="COLUMN | ADDRESS",
    multiple=True,
    callback=_split_clusters,
    help="Column that dependent rows share, such as day, host or job; 'none' if rows are "
    f"independent. Repeat the option with an address ({ADDRESS_FORMATS}) to analyse the strata on "
    "the workers of that Dask cluster, which must see the same files. Whoever controls this "
    "address can run code as you.",
)
@options.cluster_access_options
@click.option(
    "--method",
    type=click.Choice(["genetic", "mahalanobis", "propensity"]),
    default="genetic",
    show_default=True,
)
@options.flag("--difference", help="Report a difference, not a ratio; for outcomes of 0 or less.")
@options.names_option(
    "--placebo-outcome", default=(), help="Columns that the candidate cannot have changed."
)
@click.option(
    "--placebo-period",
    metavar="COLUMN=VALUE",
    callback=_split_assignment,
    help="Rows from before the change, in which the candidate cannot have an effect yet.",
)
@options.names_option(
    "--mediators",
    default=(),
    help="Columns that the candidate itself changes, in addition to the known ones.",
)
@options.names_option(
    "--allow",
    default=(),
    help="Differences that are allowed between the environments of a ledger's campaigns.",
)
@options.flag("--leave-others-out", help="Leave out the rows of other versions.")
@missing_option(show_default="refuse; without --covariates, leave the column out, with a warning")
@click.option(
    "--unit",
    metavar="NAME",
    show_default="rows; runs of a ledger",
    help="Plural noun for the rows in the sentences of the result, such as people or builds.",
)
@options.flag("--one-unit", help="Do not check that all outcomes have one unit.")
@click.option(
    "--strata",
    metavar="COLUMN",
    help="Read, match and analyse the rows of one value of this column at a time, to save memory.",
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

    FILE is a table (CSV, Parquet, a folder of Parquet files) or a ledger, whose trials are the
    rows. RUN is one campaign of the ledger. If no valid comparison is possible, Equipoise gives no
    answer (exit status 2) and says which rows it needs.
    """
    from equipoise.cli.work_bars import status_line
    from equipoise.report.builders.matching import observation_document
    from equipoise.report.json_document import encode

    output = request.output.checked(source=Path(request.file))
    if request.strata is not None and request.missing not in (None, "refuse"):
        raise UnusableInput(
            f"--strata cannot be combined with --missing {request.missing}",
            hint="remove the rows with missing values from the table, or remove --strata",
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
    from equipoise_matching.observation.analysis import observe
    from equipoise_matching.tables.missing import complete_log
    from equipoise_matching.warning import AnalysisWarning

    output = request.output
    log = read_log(request.file, output.ledger, question.treatment, show_env=output.show_env)
    covariates = question.covariates
    matched_columns = None if covariates is None else (*covariates, *question.exact)
    columns, warnings = log.allow_differences(request.allow, matched_columns)
    if request.unit is None:
        question = replace(question, unit=log.unit)
    complete_rows = complete_log(columns, question, request.missing)
    return observe(
        complete_rows.columns,
        complete_rows.question,
        source=log.source,
        left_out={**log.left_out, **complete_rows.left_out},
        warnings=(
            *(AnalysisWarning(warning.code, warning.summary, warning.hint) for warning in warnings),
            *complete_rows.warnings,
        ),
        progress=progress,
    )


def _observe_strata(
    question: Question, source: str, column: str, access: ClusterAccess | None, progress: Progress
) -> ObservationResult:
    from equipoise_matching.observation.strata import check_strata, observe_strata
    from equipoise_matching.tables.strata import find_strata

    check_strata(column, question)
    log = find_strata(source, column, question, progress)
    if access is None:
        return observe_strata(log, question, source=source, progress=progress)
    from equipoise.cluster.connection import cluster_client
    from equipoise.cluster.strata import DaskWorkers, strata_on_workers

    with cluster_client(access) as client:
        match_strata = strata_on_workers(DaskWorkers(client))
        return observe_strata(
            log, question, source=source, match_strata=match_strata, progress=progress
        )


LAUNCHER_METRICS = (
    *("wall_s", "user_s", "sys_s", "max_rss_bytes", "minor_faults", "major_faults"),
    *("voluntary_switches", "involuntary_switches"),
)
"""Metrics that the launcher measures in each trial."""
ENVIRONMENT_PREFIX = "environment_"
"""Prefix of a column with a fact of the environment that differs between campaigns."""


class ObservedLog(Struct, frozen=True):
    """Columns of a log, and the differences between the environments of its campaigns."""

    source: str
    """File or run from which the log was read."""
    columns: dict[str, NDArray[Any]]
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of trials that are not rows, by reason."""
    differences: ValuesByFact = field(default_factory=dict)
    """Facts of the environment that differ between campaigns, with their values."""
    unit: str = "rows"
    """Plural noun for the rows."""

    def allow_differences(
        self, allowed: Sequence[str], matched_columns: Sequence[str] | None
    ) -> tuple[dict[str, NDArray[Any]], tuple[CampaignWarning, ...]]:
        """Return the columns without allowed facts, and a warning for each allowed fact.

        ``matched_columns`` are the columns to match on; ``None`` means all usable columns. Raise
        `UnusableInput` if campaigns differ in a fact that is neither matched nor allowed.
        """
        equal_facts = [name for name in allowed if name not in self.differences]
        if equal_facts:
            others = ", ".join(self.differences)
            raise UnusableInput(
                f"--allow: {', '.join(equal_facts)} does not differ between the campaigns",
                hint=f"allow a fact that differs: {others}" if others else "remove --allow",
            )
        exact_hint = f"add --exact {ENVIRONMENT_PREFIX}{{name}} to compare rows with equal values"
        if matched_columns is not None:
            matched_facts = {name.removeprefix(ENVIRONMENT_PREFIX) for name in matched_columns}
            require_allowed(self.differences, matched_facts.union(allowed), exact_hint)
        warnings = tuple(
            environment_warning(name, self.differences[name], exact_hint.format(name=name))
            for name in allowed
        )
        dropped_columns = {ENVIRONMENT_PREFIX + name for name in allowed}
        kept_names = [name for name in self.columns if name not in dropped_columns]
        return {name: self.columns[name] for name in kept_names}, warnings


def read_log(name: str, ledger_path: Path, treatment: str, *, show_env: bool) -> ObservedLog:
    """Read a log: a table, a ledger, or one campaign of the ledger ``ledger_path``.

    ``name`` is a file with the extension of a table, a folder of Parquet files, a ledger, or a run.
    The values of the column ``treatment`` are read as text. ``show_env`` says whether names of
    conditions show the values of environment variables.

    Raise `UnusableInput` if there is no such file or campaign, or it has no row.
    """
    path = Path(name)
    if name.lower().endswith(ENDINGS) or is_parquet(path):
        return ObservedLog(name, read_file(path, (treatment,)))
    if path.is_file():
        with open_for_reading(path) as ledger:
            records = [ledger.read_run(run.id) for run in ledger.runs()]
        return _log_of_trials(records_for_display(records, show_env=show_env), name)
    if path.suffix:
        raise UnusableInput(
            f"{name}: there is no such file",
            hint=f"name a table ({', '.join(ENDINGS)}), a ledger, or a run of the ledger",
        )
    with open_for_reading(ledger_path) as ledger:
        record = ledger.read_run(name)
    return _log_of_trials(records_for_display((record,), show_env=show_env), record.id)


def _log_of_trials(records: Sequence[RunRecord], source: str) -> ObservedLog:
    """Return a log whose rows are the measured trials of campaigns.

    The columns have the names of ``equipoise export`` (see `_trial_row`). Each fact that differs
    between the campaigns is a column ``environment_<name>``.
    """
    left_out: Counter[str] = Counter()
    differences = _environment_differences(records)
    rows: list[dict[str, Any]] = []
    for index, record in enumerate(records):
        facts = {ENVIRONMENT_PREFIX + name: values[index] for name, values in differences.items()}
        for trial in record.trials:
            reason = _reason_left_out(trial)
            if reason is None:
                rows.append({**_trial_row(record, trial), **facts})
            else:
                left_out[reason] += 1
    if not rows:
        raise UnusableInput(
            f"{source}: no measured trial succeeded",
            hint="name another campaign; `equipoise show RUN` says why trials failed",
        )
    column_names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _column_array([row.get(name) for row in rows]) for name in column_names}
    return ObservedLog(source, columns, dict(left_out), differences, "runs")


def _environment_differences(records: Sequence[RunRecord]) -> ValuesByFact:
    facts = dict.fromkeys(
        difference.name
        for record in records[1:]
        for difference in environment_differences(records[0].environment, record.environment)
    )
    environments = [dict(flat_facts(record.environment)) for record in records]
    return {
        fact: tuple(str(environment.get(fact, "unknown")) for environment in environments)
        for fact in facts
    }


def _reason_left_out(trial: Trial) -> str | None:
    if trial.phase != "measured" or trial.washout:
        return "a warm-up or wash-out"
    if trial.timed_out:
        return "timed out"
    return None if trial.failure is None else "failed"


def _trial_row(record: RunRecord, trial: Trial) -> dict[str, Any]:
    condition = record.plan.conditions[trial.condition]
    return {
        "run": record.id,
        "study": record.plan.study,
        "boot": str(record.environment.get("boot_id") or "unknown"),
        "day": _utc_day(trial.started_at),
        "started_at": trial.started_at,
        "block": f"{record.id}/{trial.block}",
        "position": trial.position,
        "condition": condition.name,
        **{f"level_{factor}": level for factor, level in condition.levels.items()},
        **{name: getattr(trial.accounting, name) for name in LAUNCHER_METRICS},
        **{f"covariate_{name}": value for name, value in trial.covariates.items()},
        **{
            f"metric_{sample.metric}": sample.value
            for sample in trial.samples
            if sample.iteration is None
        },
    }


def _utc_day(seconds: float) -> str | None:
    """Return the UTC day of seconds since the epoch; ``None`` outside the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _column_array(values: list[Any]) -> NDArray[Any]:
    """Return an array of numbers, with NaN for missing values; else an array of objects."""
    if all(value is None or isinstance(value, int | float) for value in values):
        return np.array(values, dtype=np.float64)
    return np.array(values, dtype=object)
