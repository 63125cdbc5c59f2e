"""Between the frozen data and the rows of the ledger."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from equipoise.ledger.kinds import decoded
from equipoise.ledger.text import mapping_to_text, storable
from equipoise.model.bulk import fast_maker, make_many
from equipoise.model.observation import Observation
from equipoise.model.plan import Plan
from equipoise.model.trial import Accounting, Draw, Sample, Trial

_TRIAL_COLUMNS = (
    "phase, block, position, condition, started_at, wall_s, user_s, sys_s, max_rss_bytes, "
    "minor_faults, major_faults, voluntary_switches, involuntary_switches, block_reads, "
    "block_writes, output_bytes, counters, unknown, exit, failure, timed_out, washout, error_tail, "
    "covariates"
)
INSERT_TRIAL = (
    f"INSERT INTO trial (run, {_TRIAL_COLUMNS}) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT_TRIALS = f"SELECT number, {_TRIAL_COLUMNS} FROM trial WHERE run = ? ORDER BY number"
INSERT_SAMPLE = (
    "INSERT INTO sample (trial, place, metric, value, iteration, unit, better) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
SELECT_SAMPLES = (
    "SELECT sample.trial, metric, value, iteration, unit, better "
    "FROM trial JOIN sample ON sample.trial = trial.number "
    "WHERE trial.run = ? ORDER BY sample.trial, place"
)
INSERT_DRAW = (
    "INSERT INTO draw (run, phase, block, conditions, padding_bytes, layout) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
SELECT_DRAWS = (
    "SELECT phase, block, conditions, padding_bytes, layout FROM draw WHERE run = ? ORDER BY number"
)
INSERT_OBSERVATION = (
    "INSERT INTO observation "
    "(run, source, condition, repetition, position, observed_at, document, failure) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT_OBSERVATIONS = (
    "SELECT source, condition, repetition, position, observed_at, document, failure "
    "FROM observation WHERE run = ? ORDER BY number"
)

_Amounts = dict[str, float | None]

_make_accounting = fast_maker(Accounting)
_make_sample = fast_maker(Sample)
_make_trial = fast_maker(Trial)


def trial_row(run: int, trial: Trial) -> tuple[Any, ...]:
    """One row of ``trial``; what is rarely filled is NULL while it is empty.

    A time that is not a number is no measurement: SQLite keeps it as NULL, unknown.
    """
    accounting = trial.accounting
    return (
        run,
        trial.phase,
        trial.block,
        trial.position,
        trial.condition,
        float(trial.started_at),
        _real(accounting.wall_s),
        _real(accounting.user_s),
        _real(accounting.sys_s),
        accounting.max_rss_bytes,
        accounting.minor_faults,
        accounting.major_faults,
        accounting.voluntary_switches,
        accounting.involuntary_switches,
        accounting.block_reads,
        accounting.block_writes,
        accounting.output_bytes,
        mapping_to_text(accounting.counters),
        mapping_to_text(accounting.unknown),
        trial.exit,
        _optional_text(trial.failure),
        trial.timed_out,
        trial.washout,
        storable(trial.error_tail) if trial.error_tail else None,
        mapping_to_text(trial.covariates),
    )


def sample_rows(trial: int, samples: Iterable[Sample]) -> Iterable[tuple[Any, ...]]:
    """The rows of ``sample``, in the order in which the workload wrote them."""
    for place, sample in enumerate(samples):
        yield (
            trial,
            place,
            storable(sample.metric),
            float(sample.value),
            sample.iteration,
            _optional_text(sample.unit),
            sample.better,
        )


def draw_row(run: int, draw: Draw) -> tuple[Any, ...]:
    """One row of ``draw``."""
    order = ",".join(str(condition) for condition in draw.order)
    return (run, draw.phase, draw.block, f"[{order}]", draw.padding_bytes, draw.layout)


def draws_from(rows: Iterable[tuple[Any, ...]]) -> tuple[Draw, ...]:
    """Turn the rows of `SELECT_DRAWS` back into draws."""
    orders = _Orders()
    return tuple(
        make_many(
            Draw,
            (
                (phase, block, orders[conditions], padding, layout)
                for phase, block, conditions, padding, layout in rows
            ),
        )
    )


def samples_from(rows: Iterable[tuple[Any, ...]]) -> dict[int, tuple[Sample, ...]]:
    """Gather the rows of `SELECT_SAMPLES` by the number of their trial."""
    gathered: dict[int, list[Sample]] = {}
    for trial, metric, value, iteration, unit, better in rows:
        known = float("nan") if value is None else value
        sample = _make_sample(metric, known, iteration, unit, better)
        gathered.setdefault(trial, []).append(sample)
    return {trial: tuple(samples) for trial, samples in gathered.items()}


def trials_from(
    rows: sqlite3.Cursor, samples: Mapping[int, tuple[Sample, ...]]
) -> tuple[Trial, ...]:
    """Turn the rows of `SELECT_TRIALS` back into trials.

    Unpacked by hand into one call: a ledger of 100,000 trials has to open at once.
    What a machine cannot read is the same at every trial, so those reasons are decoded once.
    """
    reasons = _Reasons()
    return tuple(
        [
            _make_trial(
                phase,
                block,
                position,
                condition,
                started_at,
                _make_accounting(
                    wall_s,
                    user_s,
                    sys_s,
                    max_rss_bytes,
                    minor_faults,
                    major_faults,
                    voluntary_switches,
                    involuntary_switches,
                    block_reads,
                    block_writes,
                    output_bytes,
                    {} if counters is None else decoded(counters, _Amounts),
                    {} if unknown is None else reasons[unknown].copy(),
                ),
                exit_status,
                failure,
                timed_out == 1,
                washout == 1,
                "" if error_tail is None else error_tail,
                {} if covariates is None else decoded(covariates, _Amounts),
                samples.get(number, ()),
            )
            for (
                number,
                phase,
                block,
                position,
                condition,
                started_at,
                wall_s,
                user_s,
                sys_s,
                max_rss_bytes,
                minor_faults,
                major_faults,
                voluntary_switches,
                involuntary_switches,
                block_reads,
                block_writes,
                output_bytes,
                counters,
                unknown,
                exit_status,
                failure,
                timed_out,
                washout,
                error_tail,
                covariates,
            ) in rows
        ]
    )


def observation_row(run: int, observation: Observation) -> tuple[Any, ...]:
    """One row of ``observation``; its document is compressed (RFC 1950)."""
    document = observation.document
    return (
        run,
        storable(observation.source),
        observation.condition,
        observation.repetition,
        observation.position,
        float(observation.observed_at),
        None if document is None else zlib.compress(document),
        _optional_text(observation.failure),
    )


def observations_from(rows: Iterable[tuple[Any, ...]]) -> tuple[Observation, ...]:
    """Turn the rows of `SELECT_OBSERVATIONS` back into observations.

    Raises
    ------
    ValueError
        A document cannot be unpacked.
    """
    return tuple(
        Observation(source, condition, repetition, position, at, _unpacked(document), failure)
        for source, condition, repetition, position, at, document, failure in rows
    )


def _unpacked(document: bytes | None) -> bytes | None:
    if document is None:
        return None
    try:
        return zlib.decompress(document)
    except zlib.error as error:
        raise ValueError(f"a document of evidence: {error}") from error


class _Orders(dict[str, tuple[int, ...]]):
    """The decoded orders by their JSON."""

    def __missing__(self, text: str) -> tuple[int, ...]:
        order = self[text] = decoded(text, tuple[int, ...])
        return order


class _Reasons(dict[str, dict[str, str]]):
    """The decoded reasons by their JSON."""

    def __missing__(self, text: str) -> dict[str, str]:
        reasons = self[text] = decoded(text, dict[str, str])
        return reasons


def plan_from(text: str) -> Plan:
    """Turn the JSON of a plan back into a plan."""
    return decoded(text, Plan)


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)


def _optional_text(value: str | None) -> str | None:
    return None if value is None else storable(value)
