"""Conversion of frozen data to rows of the ledger, and back.

The JSON encoder is the standard library's, because it keeps infinities and undecodable bytes of
command lines.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from equipoise.ledger.run_reference import name_of
from equipoise.ledger.untrusted import WHOLE_NUMBERS, check_rows_of_run
from equipoise.model.host import HostReference
from equipoise.model.kinds import terms_from
from equipoise.model.plan import Condition, Plan
from equipoise.model.quantities import MAX_MEASURED_VALUE
from equipoise.model.record import (
    Accounting,
    CampaignWarning,
    Draw,
    Observation,
    RecordedWarning,
    RunRecord,
    Sample,
    Segment,
    Trial,
)
from equipoise.shared.safe_text import as_unicode

Row = tuple[Any, ...]
"""Values of a row in the order of the columns below, without the number of the run."""
TrialRows = tuple[Row, tuple[Row, ...]]
"""Row of a trial, and rows of its samples in the order of the workload."""
Decoded = TypeVar("Decoded")
_strict_decoder = msgspec.json.Decoder()


def to_text(value: Any) -> str:
    """Encode frozen data or a mapping as JSON. `from_text` restores all floats exactly."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def mapping_to_text(mapping: Mapping[str, Any]) -> str | None:
    """Encode a mapping as JSON; an empty mapping is NULL."""
    return json.dumps(mapping, separators=(",", ":")) if mapping else None


def from_text(text: str) -> Any:
    """Decode a text of `to_text`; raise `ValueError` if it is not JSON."""
    return read_as(text, _strict_decoder)


def read_as(text: str, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
    """Decode JSON as one type; raise `ValueError` if the text is something else."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(text), decoder.type)


def digest_of_text(text: str) -> bytes:
    """Return a digest of a text, 16 bytes."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def digest_of_commands(plan: Plan) -> bytes:
    """Return a digest of the commands and environments of a plan, 16 bytes.

    Campaigns with equal digests differ only in names, hooks, budgets and seeds. A kind of campaign
    may choose another part of the plan for the digest.
    """
    workloads = [_workload_of(condition) for condition in plan.conditions]
    return digest_of_text(to_text(plan.rules.workloads_for_digest(workloads)))


def _workload_of(condition: Condition) -> Sequence[Any]:
    environment = sorted(condition.environment.items())
    process, server, output = condition.process, condition.server, condition.output
    return (condition.command, environment, process, server, output)


MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
"""Maximum size of an observation as JSON; usual sizes are up to a few MiB."""
MAX_EVIDENCE_BYTES = 4 * MAX_DOCUMENT_BYTES
"""Maximum total size of the documents of a run."""
_MAX_RUN_TRIALS = 50_000_000
"""Maximum number of blocks times conditions, which limits the arrays of an analysis."""

_SEED_COUNT = 2**64
"""Number of possible seeds, from 0."""
_MAX_MIN_EFFECT = 1000.0
"""Largest possible value of the smallest effect that matters, in percent."""

TRIAL_COLUMNS = (
    "phase, block, position, condition, started_at, wall_s, user_s, sys_s, "
    f"{', '.join(WHOLE_NUMBERS)}, counters, unknown, exit, failure, failure_kind, washout, "
    "error_tail, covariates"
)
SAMPLE_COLUMNS = "metric, value, iteration, unit, better, resolution"
DRAW_COLUMNS = "phase, block, conditions, padding_bytes, layout"
WARNING_COLUMNS = "code, summary, hint, condition, absent_from"
OBSERVATION_COLUMNS = "source, condition, repetition, position, observed_at, document, failure"
"""This constant and the four above: columns of tables, in the order of the values of a `Row`."""

_SELECT_RUN = (
    "SELECT run.identity, plan, started_at, host.identity, host.name "
    "FROM run LEFT JOIN host ON host.number = run.host WHERE run.number = ?"
)
SELECT_TRIALS = f"SELECT number, {TRIAL_COLUMNS} FROM trial WHERE run = ? ORDER BY number"
_SELECT_SAMPLES = (
    f"SELECT sample.trial, {SAMPLE_COLUMNS} "
    "FROM trial JOIN sample ON sample.trial = trial.number "
    "WHERE trial.run = ? ORDER BY sample.trial, ordinal"
)
SELECT_DRAWS = f"SELECT {DRAW_COLUMNS} FROM draw WHERE run = ? ORDER BY number"
SELECT_WARNINGS = f"SELECT {WARNING_COLUMNS} FROM warning WHERE run = ? ORDER BY ordinal"
SELECT_OBSERVATIONS = (
    f"SELECT {OBSERVATION_COLUMNS} FROM observation WHERE run = ? ORDER BY ordinal"
)
_SELECT_SEGMENTS = """
    SELECT segment.started_at, document, ended_at, stopped_because
    FROM segment JOIN environment ON environment.digest = segment.environment
        LEFT JOIN segment_end
            ON segment_end.run = segment.run AND segment_end.segment = segment.number
    WHERE segment.run = ? ORDER BY segment.number
"""

_environment_decoder = msgspec.json.Decoder(dict[str, Any])
_MeasuredValue = Annotated[float, msgspec.Meta(ge=-MAX_MEASURED_VALUE, le=MAX_MEASURED_VALUE)]
_numbers_decoder = msgspec.json.Decoder(dict[str, _MeasuredValue | None])
_reasons_decoder = msgspec.json.Decoder(dict[str, str])
_order_decoder = msgspec.json.Decoder(tuple[int, ...])
# These types hide the signatures, because mypy cannot check unpacked rows.
_make_accounting: Callable[..., Accounting] = Accounting
_make_trial: Callable[..., Trial] = Trial
_whole_numbers_of: Callable[[Accounting], tuple[int | None, ...]] = attrgetter(*WHOLE_NUMBERS)


class _DecodedTexts(dict[str, Decoded]):
    """Cache of decoded JSON texts, because many rows have equal texts."""

    def __init__(self, decoder: msgspec.json.Decoder[Decoded]) -> None:
        self._decoder = decoder

    def __missing__(self, text: str) -> Decoded:
        decoded = self[text] = read_as(text, self._decoder)
        return decoded


def trial_rows(trial: Trial) -> TrialRows:
    """Return a trial and its samples as rows; empty mappings and impossible values are NULL."""
    accounting = trial.accounting
    seconds = (accounting.wall_s, accounting.user_s, accounting.sys_s)
    row = (
        trial.phase,
        trial.block,
        trial.position,
        trial.condition,
        float(trial.started_at),
        *map(_storable, seconds),
        *_whole_numbers_of(accounting),
        mapping_to_text(_storable_values(accounting.counters)),
        mapping_to_text(accounting.unknown),
        trial.exit,
        _optional_text(trial.failure),
        trial.failure_kind,
        trial.washout,
        as_unicode(trial.error_tail) if trial.error_tail else None,
        mapping_to_text(_storable_values(trial.covariates)),
    )
    return row, tuple(map(_sample_row, trial.samples))


def _sample_row(sample: Sample) -> Row:
    metric, unit = as_unicode(sample.metric), _optional_text(sample.unit)
    resolution = None if sample.resolution is None else float(sample.resolution)
    return (metric, _storable(sample.value), sample.iteration, unit, sample.better, resolution)


def _storable(value: float | None) -> float | None:
    """Return a value that the ledger accepts; ``None`` for an impossible value."""
    # The comparison is false for NaN, so NaN becomes NULL.
    return float(value) if value is not None and abs(value) <= MAX_MEASURED_VALUE else None


def _storable_values(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {
        name: value if value is not None and abs(value) <= MAX_MEASURED_VALUE else None
        for name, value in values.items()
    }


def draw_row(draw: Draw) -> Row:
    """Return a draw as a row."""
    order = ",".join(str(condition) for condition in draw.order)
    return (draw.phase, draw.block, f"[{order}]", draw.padding_bytes, draw.layout)


def warning_row(warning: CampaignWarning) -> Row:
    """Return a warning as a row."""
    texts = map(as_unicode, (warning.code, warning.summary, warning.hint))
    if isinstance(warning, RecordedWarning):
        return (*texts, warning.condition, warning.absent_from)
    return (*texts, None, None)


def observation_row(observation: Observation) -> Row:
    """Return an observation as a row with a compressed document (RFC 1950).

    A document over `MAX_DOCUMENT_BYTES` is left out, and the row has the reason.
    """
    document, failure = observation.document, observation.failure
    if document is not None and len(document) > MAX_DOCUMENT_BYTES:
        failure = f"its document has {len(document)} bytes; at most {MAX_DOCUMENT_BYTES} are kept"
        document = None
    return (
        as_unicode(observation.source),
        observation.condition,
        observation.repetition,
        observation.position,
        float(observation.observed_at),
        None if document is None else zlib.compress(document),
        _optional_text(failure),
    )


def _optional_text(value: str | None) -> str | None:
    return None if value is None else as_unicode(value)


def recorded_run(connection: sqlite3.Connection, path: Path, run: int, name: str) -> RunRecord:
    """Read the run with a number and a name, after checking each row.

    Raise `UnusableInput` if a row has a value that no campaign records. Raise `ValueError` if a row
    cannot be decoded or contradicts another row.
    """
    check_rows_of_run(connection, path, run)

    def select(statement: str) -> sqlite3.Cursor:
        return connection.execute(statement, (run,))

    identity, plan_text, started_at, host_identity, host_name = select(_SELECT_RUN).fetchone()
    host = None if host_identity is None else HostReference(host_identity.hex(), host_name)
    orders = _DecodedTexts(_order_decoder)
    record = RunRecord(
        id=name,
        identity=identity.hex(),
        host=host,
        plan=plan_from_text(plan_text),
        started_at=started_at,
        segments=tuple(
            Segment(start, read_as(environment, _environment_decoder), end, stop_reason)
            for start, environment, end, stop_reason in select(_SELECT_SEGMENTS)
        ),
        draws=tuple(
            Draw(phase, block, orders[conditions], padding, layout)
            for phase, block, conditions, padding, layout in select(SELECT_DRAWS)
        ),
        trials=_read_trials(select(SELECT_TRIALS), _read_samples(select(_SELECT_SAMPLES))),
        warnings=tuple(RecordedWarning(*row) for row in select(SELECT_WARNINGS)),
        observations=_read_observations(select(SELECT_OBSERVATIONS)),
    )
    _refuse_inconsistent(record)
    return record


def check_run(connection: sqlite3.Connection, path: Path, run: int) -> None:
    """Check each row of a run, also against the plan; errors as in `recorded_run`."""
    recorded_run(connection, path, run, name_of(connection, run))
    study, names_json, part_of, host_index, plan_text = connection.execute(
        "SELECT study, names, part_of, host_index, plan FROM run WHERE number = ?", (run,)
    ).fetchone()
    plan = plan_from_text(plan_text)
    member = plan.membership
    fleet_columns: tuple[bytes | None, int | None] = (None, None)
    if member is not None:
        fleet_columns = (bytes.fromhex(member.fleet_identity), member.host_index)
    plan_columns = (as_unicode(plan.study), [condition.name for condition in plan.conditions])
    if (study, from_text(names_json)) != plan_columns or (part_of, host_index) != fleet_columns:
        raise ValueError("the row of a run contradicts its plan")


def _read_samples(rows: Iterable[Row]) -> dict[int, tuple[Sample, ...]]:
    samples_by_trial: dict[int, list[Sample]] = {}
    for trial, metric, stored_value, *rest in rows:
        value = float("nan") if stored_value is None else stored_value
        samples_by_trial.setdefault(trial, []).append(Sample(metric, value, *rest))
    return {trial: tuple(samples) for trial, samples in samples_by_trial.items()}


def _read_trials(
    rows: Iterable[Row], samples: Mapping[int, tuple[Sample, ...]]
) -> tuple[Trial, ...]:
    # Trials of one host have equal reasons why a value cannot be measured.
    reasons = _DecodedTexts(_reasons_decoder)
    trials: list[Trial] = []
    for number, *fields in rows:
        # The indices follow `TRIAL_COLUMNS`: wall_s has index 5, and counters has index 16.
        position_and_start, accounted_values = fields[:5], fields[5:16]
        counters, unknown, exit_status, failure, failure_kind, *last_fields = fields[16:]
        washout, error_tail, covariates = last_fields
        accounting = _make_accounting(
            *accounted_values,
            {} if counters is None else read_as(counters, _numbers_decoder),
            {} if unknown is None else reasons[unknown].copy(),
        )
        trials.append(
            _make_trial(
                *position_and_start,
                accounting,
                exit_status,
                failure,
                failure_kind,
                washout == 1,
                "" if error_tail is None else error_tail,
                {} if covariates is None else read_as(covariates, _numbers_decoder),
                samples.get(number, ()),
            )
        )
    return tuple(trials)


def _read_observations(rows: Iterable[Row]) -> tuple[Observation, ...]:
    observations: list[Observation] = []
    remaining_bytes = MAX_EVIDENCE_BYTES
    for source, condition, repetition, position, observed_at, document, failure in rows:
        content = None if document is None else _decompress(document, remaining_bytes)
        remaining_bytes -= len(content or b"")
        observations.append(
            Observation(source, condition, repetition, position, observed_at, content, failure)
        )
    return tuple(observations)


def _decompress(document: bytes, remaining_bytes: int) -> bytes:
    limit = min(MAX_DOCUMENT_BYTES, remaining_bytes)
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(document, limit + 1)
    except zlib.error as error:
        raise ValueError(f"a document of evidence: {error}") from error
    if len(content) > limit:
        raise ValueError(
            f"a document of evidence unpacks to more than {MAX_DOCUMENT_BYTES} bytes, "
            f"or all documents of the run to more than {MAX_EVIDENCE_BYTES}"
        )
    if not inflater.eof:
        raise ValueError("a document of evidence is truncated")
    return content


def plan_from_text(text: str) -> Plan:
    """Return a stored plan.

    Raise `ValueError` if the text is not a plan, or the plan has impossible numbers.
    """
    plan = msgspec.convert(from_text(text), Plan, dec_hook=terms_from)
    if not plan.conditions:
        raise ValueError("its plan has no conditions")
    _refuse_impossible_numbers(plan)
    return plan


def _refuse_impossible_numbers(plan: Plan) -> None:
    """Refuse numbers with which arithmetic would overflow or divide by zero."""
    judgement, stopping = plan.judgement, plan.stopping
    checks = {
        "alpha": 0.0 < judgement.alpha < 1.0,
        "smallest effect": 0.0 <= judgement.min_effect <= _MAX_MIN_EFFECT,
        "seed": 0 <= plan.seed < _SEED_COUNT,
        "number of blocks": stopping.blocks is None or 0 <= stopping.blocks <= _MAX_RUN_TRIALS,
        "smallest number of blocks": 0 <= stopping.min_blocks <= _MAX_RUN_TRIALS,
        "number of blocks before the budget": 0 <= stopping.blocks_before_budget <= _MAX_RUN_TRIALS,
        "tail": stopping.tail is None or 0.0 < stopping.tail < 100.0,
        "precision": stopping.precision is None or 0.0 < stopping.precision <= MAX_MEASURED_VALUE,
        "budget": 0.0 <= stopping.budget_s <= MAX_MEASURED_VALUE,
        "number of seconds": 0.0 <= stopping.min_seconds <= MAX_MEASURED_VALUE,
    }
    for name, is_possible in checks.items():
        if not is_possible:
            raise ValueError(f"its plan has an impossible {name}")


def _refuse_inconsistent(record: RunRecord) -> None:
    """Refuse a run that is too large, or whose rows contradict its plan or its draws."""
    plan, condition_count = record.plan, len(record.plan.conditions)
    conditions = {index for contrast in plan.contrasts for index in contrast.pair}
    conditions |= {trial.condition for trial in record.trials}
    conditions |= {observation.condition for observation in record.observations}
    conditions |= {
        warning.condition for warning in record.warnings if warning.condition is not None
    }
    conditions.update(*{draw.order for draw in record.draws})
    if plan.control is not None:
        conditions.add(plan.control)
    for condition in conditions:
        if not 0 <= condition < condition_count:
            raise ValueError(f"it has condition {condition} of a plan with {condition_count}")
    orders = {(draw.phase, draw.block): draw.order for draw in record.draws}
    washout_blocks = {(trial.phase, trial.block) for trial in record.trials if trial.washout}
    for trial in record.trials:
        block = (trial.phase, trial.block)
        # A slice may lack the draw, which an earlier slice of the run has.
        order = orders.get(block)
        if order is None or trial.washout:
            continue
        # Washouts have even positions; the trial after each washout has the odd position.
        index = trial.position // 2 if block in washout_blocks else trial.position
        if order[index : index + 1] != (trial.condition,):
            raise ValueError(f"a trial of block {trial.block} differs from its draw")
    if condition_count * len(record.draws) > _MAX_RUN_TRIALS:
        raise ValueError(f"it has {len(record.draws)} blocks of {condition_count} conditions")
