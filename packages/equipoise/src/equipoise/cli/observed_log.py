"""The log that ``observe`` reads: a table, or the trials of a ledger as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from equipoise.analysis.reference import environment_differences, flat_facts
from equipoise.analysis.reported import reported_records
from equipoise.cli.results import Differing, check_allowed, difference_warning
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning, RunRecord, Trial
from equipoise_matching.tables.reading import ENDINGS, is_parquet, read_file

ACCOUNTED = (
    *("wall_s", "user_s", "sys_s", "max_rss_bytes", "minor_faults", "major_faults"),
    *("voluntary_switches", "involuntary_switches"),
)
"""What the launcher measures of each trial."""
PREFIX = "environment_"


class ObservedLog(Struct, frozen=True):
    """Columns of a log, and what differs between the environments of its campaigns."""

    source: str
    columns: dict[str, NDArray[Any]]
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of trials that are no rows, by reason."""
    differing: Differing = field(default_factory=dict)
    unit: str = "rows"
    """What a row is, in the plural."""

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
        return _trials_as_rows(reported_records(records, show_env=show_env), name)
    if path.suffix:
        raise UnusableInput(
            f"{name}: there is no such file",
            hint=f"name a table ({', '.join(ENDINGS)}), a ledger's file, or a RUN of the ledger",
        )
    with open_for_reading(ledger_path) as ledger:
        record = ledger.read_run(name)
    return _trials_as_rows(reported_records((record,), show_env=show_env), record.id)


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
    """Return what differs between the environments, with the value of each campaign."""
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
