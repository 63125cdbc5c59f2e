"""The log that ``observe`` is asked about: a table, or the trials of a ledger as rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.cli.observed_environments import PREFIX, differing_environments
from equipoise.cli.reported import reported_records
from equipoise.cli.table_file import ENDINGS, read_table
from equipoise.cli.unlike import Differing
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord, Trial

ACCOUNTED = (
    "wall_s",
    "user_s",
    "sys_s",
    "max_rss_bytes",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
)
"""What the launcher measured of each trial."""


@dataclass(frozen=True, slots=True)
class ObservedLog:
    """Columns of rows; ``left_out`` counts trials that are no rows, by the reason."""

    source: str
    columns: dict[str, NDArray[Any]]
    left_out: dict[str, int]
    differing: Differing = field(default_factory=dict)
    """In what the environments of its campaigns differ."""

    def without(self, allowed: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The columns but for what was allowed to differ: it is not matched on."""
        left = {PREFIX + name for name in allowed}
        return {name: column for name, column in self.columns.items() if name not in left}


def read_log(named: str, ledger_path: Path, treatment: str, *, show_env: bool) -> ObservedLog:
    """Read a table (by its ending), a ledger's file with all its campaigns, or one campaign.

    Parameters
    ----------
    treatment
        The column that says what ran: names, even where they look like numbers.
    show_env
        Whether names keep the values of environment variables.

    Raises
    ------
    UnusableInput
        There is no such file or campaign, or it has no row.
    """
    path = Path(named)
    if named.lower().endswith(ENDINGS):
        from equipoise.matching.frames import columns_of

        return ObservedLog(named, columns_of(read_table(path, (treatment,))) or {}, {})
    if path.is_file():
        with open_for_reading(path) as ledger:
            records = [ledger.read_run(one.id) for one in ledger.runs()]
        return trials_of(reported_records(records, show_env=show_env), named)
    if path.suffix:
        raise UnusableInput(
            f"{named}: there is no such file",
            hint=f"name a table ({', '.join(ENDINGS)}), a ledger's file, or a RUN of the ledger",
        )
    with open_for_reading(ledger_path) as ledger:
        record = ledger.read_run(named)
    return trials_of(reported_records((record,), show_env=show_env), record.id)


def trials_of(records: Sequence[RunRecord], source: str) -> ObservedLog:
    """The measured trials of campaigns by columns.

    ``run``, ``study``, ``boot``, ``day`` (UTC), ``started_at`` (seconds), ``block`` (with its
    run), ``position``, ``condition``, what the launcher measured, and ``level_<factor>``,
    ``covariate_<name>`` and ``metric_<name>`` as ``equipoise export`` names them;
    ``environment_<name>`` for what is not the same in all of them. A column that a trial lacks is
    missing there.

    Raises
    ------
    UnusableInput
        There is no such trial.
    """
    left_out: Counter[str] = Counter()
    differing = differing_environments(records)
    rows: list[dict[str, Any]] = []
    for place, record in enumerate(records):
        environment = {PREFIX + name: values[place] for name, values in differing.items()}
        for trial in record.trials:
            reason = _no_row(trial)
            if reason is None:
                rows.append({**_row(record, trial), **environment})
            else:
                left_out[reason] += 1
    if not rows:
        raise UnusableInput(f"{source}: no measured trial ended well", hint="name another campaign")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return ObservedLog(source, columns, dict(left_out), differing)


def _no_row(trial: Trial) -> str | None:
    if trial.phase != "measured" or trial.washout:
        return "a warm-up or wash-out"
    if trial.timed_out:
        return "timed out"
    return None if trial.failure is None else "failed"


def _row(record: RunRecord, trial: Trial) -> dict[str, Any]:
    condition = record.plan.conditions[trial.condition]
    environment = record.segments[0].environment if record.segments else {}
    return {
        "run": record.id,
        "study": record.plan.study,
        "boot": str(environment.get("boot_id") or "unknown"),
        "day": _day(trial.started_at),
        "started_at": trial.started_at,
        "block": f"{record.id}/{trial.block}",
        "position": trial.position,
        "condition": condition.name,
        **{f"level_{factor}": level for factor, level in condition.levels.items()},
        **{name: getattr(trial.accounting, name) for name in ACCOUNTED},
        **{f"covariate_{name}": value for name, value in trial.covariates.items()},
        **dict(_own_metrics(trial)),
    }


def _day(seconds: float) -> str | None:
    """Return the day of a moment; ``None`` of a moment that no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _own_metrics(trial: Trial) -> Iterator[tuple[str, float]]:
    for sample in trial.samples:
        if sample.iteration is None:
            yield f"metric_{sample.metric}", sample.value


def _column(values: list[Any]) -> NDArray[Any]:
    """Numbers as numbers, with what is missing as not a number; else texts."""
    if all(value is None or isinstance(value, int | float) for value in values):
        return np.array([math.nan if value is None else float(value) for value in values])
    return np.array(values, dtype=object)
