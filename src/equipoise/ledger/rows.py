"""Between the frozen data and the rows of the ledger."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from equipoise.ledger.text import from_text, mapping_to_text, read_as, storable
from equipoise.model.bulk import fast_maker
from equipoise.model.observation import Observation
from equipoise.model.plan import Plan
from equipoise.model.record import RunRecord
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

MOST_DOCUMENT_BYTES = 256 * 1024 * 1024
"""What a source of evidence may have seen, as JSON; the largest in practice is a few MiB."""
MOST_EVIDENCE_BYTES = 4 * MOST_DOCUMENT_BYTES
"""The documents of one run together."""

_MOST_PLACES = 50_000_000
"""Blocks times conditions: the size of the arrays that an analysis makes."""

_NUMBERS = msgspec.json.Decoder(dict[str, float | None])
_REASONS = msgspec.json.Decoder(dict[str, str])
_ORDER = msgspec.json.Decoder(tuple[int, ...])

_make_accounting = fast_maker(Accounting)
_make_draw = fast_maker(Draw)
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
        [
            _make_draw(phase, block, orders[conditions], padding, layout)
            for phase, block, conditions, padding, layout in rows
        ]
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
                    {} if counters is None else read_as(counters, _NUMBERS),
                    {} if unknown is None else reasons[unknown].copy(),
                ),
                exit_status,
                failure,
                timed_out == 1,
                washout == 1,
                "" if error_tail is None else error_tail,
                {} if covariates is None else read_as(covariates, _NUMBERS),
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
    """One row of ``observation``; its document is compressed (RFC 1950).

    A document that could not be read again is left out, and the row says so.
    """
    document, failure = observation.document, observation.failure
    if document is not None and len(document) > MOST_DOCUMENT_BYTES:
        failure = f"it saw {len(document)} bytes; at most {MOST_DOCUMENT_BYTES} are kept"
        document = None
    return (
        run,
        storable(observation.source),
        observation.condition,
        observation.repetition,
        observation.position,
        float(observation.observed_at),
        None if document is None else zlib.compress(document),
        _optional_text(failure),
    )


def observations_from(rows: Iterable[tuple[Any, ...]]) -> tuple[Observation, ...]:
    """Turn the rows of `SELECT_OBSERVATIONS` back into observations.

    Raises
    ------
    ValueError
        A document cannot be unpacked.
    """
    found: list[Observation] = []
    room = MOST_EVIDENCE_BYTES
    for source, condition, repetition, position, at, document, failure in rows:
        unpacked = None if document is None else _unpacked(document, room)
        room -= len(unpacked or b"")
        found.append(Observation(source, condition, repetition, position, at, unpacked, failure))
    return tuple(found)


def _unpacked(document: bytes, room: int) -> bytes:
    """Decompress a document, but no more of it than any document has."""
    most = min(MOST_DOCUMENT_BYTES, room)
    inflater = zlib.decompressobj()
    try:
        unpacked = inflater.decompress(document, most + 1)
    except zlib.error as error:
        raise ValueError(f"a document of evidence: {error}") from error
    if len(unpacked) > most:
        raise ValueError(
            f"a document of evidence unpacks to more than {MOST_DOCUMENT_BYTES} bytes, "
            f"or those of the run to more than {MOST_EVIDENCE_BYTES}"
        )
    if not inflater.eof:
        raise ValueError("a document of evidence: it is cut short")
    return unpacked


class _Orders(dict[str, tuple[int, ...]]):
    """The decoded orders by their JSON."""

    def __missing__(self, text: str) -> tuple[int, ...]:
        decoded: tuple[int, ...] = read_as(text, _ORDER)
        self[text] = decoded
        return decoded


class _Reasons(dict[str, dict[str, str]]):
    """The decoded reasons by their JSON."""

    def __missing__(self, text: str) -> dict[str, str]:
        decoded: dict[str, str] = read_as(text, _REASONS)
        self[text] = decoded
        return decoded


def plan_from(text: str) -> Plan:
    """Turn the JSON of a plan back into a plan.

    Raises
    ------
    ValueError
        It is none.
    """
    stored = from_text(text)
    for cause in (stored.get("explains") or {}).get("causes", ()):
        if "words" in cause:  # as the first release wrote it
            cause["summary"] = cause.pop("words")
    plan = msgspec.convert(stored, Plan)
    if not plan.conditions:
        raise ValueError("a plan without conditions")
    return plan


def refuse_inconsistent(record: RunRecord) -> None:
    """Refuse a run whose rows speak of conditions that its plan does not have.

    Raises
    ------
    ValueError
        It gives the number of the condition, or the size of what would have to be computed.
    """
    plan, count = record.plan, len(record.plan.conditions)
    named = {index for one in plan.contrasts for index in (one.baseline, one.candidate)}
    named |= {one.condition for one in record.trials}
    named |= {one.condition for one in record.observations}
    named.update(*{one.order for one in record.draws})
    if plan.control is not None:
        named.add(plan.control)
    for index in named:
        if not 0 <= index < count:
            raise ValueError(f"condition {index} of a plan with {count}")
    if count * len(record.draws) > _MOST_PLACES:
        raise ValueError(f"{len(record.draws)} blocks of a plan with {count} conditions")


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)


def _optional_text(value: str | None) -> str | None:
    return None if value is None else storable(value)
