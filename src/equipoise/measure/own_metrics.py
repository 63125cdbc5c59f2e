"""A workload's own metrics: JSON lines in the file that EQUIPOISE_METRICS names."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path

import msgspec

from equipoise.model.trial import Accounting, Better, Sample

VARIABLE = "EQUIPOISE_METRICS"
MOST_BYTES = 64 * 1024 * 1024
_MEASURED = frozenset(one.name for one in fields(Accounting))
"""By the launcher: what a trial says of these itself would stand in their place."""


@dataclass(frozen=True, slots=True)
class OwnMetrics:
    """What a trial reported itself, and what was wrong with it (``None`` if nothing)."""

    samples: tuple[Sample, ...]
    problem: str | None


@dataclass(frozen=True, slots=True)
class _Line:
    metric: str
    value: float
    iteration: int | None = None
    unit: str | None = None
    better: Better = "lower"


def read(path: Path) -> OwnMetrics:
    """Read the metrics that one trial wrote; a line that cannot be read is named, not guessed."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return OwnMetrics((), None)
    if size > MOST_BYTES:
        return OwnMetrics((), f"it wrote {size} bytes of metrics, over {MOST_BYTES}")
    decoder = msgspec.json.Decoder(_Line)
    samples: list[Sample] = []
    problem: str | None = None
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = problem or f"line {number} of its metrics cannot be read: {error}"
            continue
        if not math.isfinite(line.value):
            problem = problem or f"line {number} of its metrics is not a finite number"
            continue
        if line.metric in _MEASURED:
            problem = problem or (
                f"line {number} of its metrics is named {line.metric}, which Equipoise measures "
                "itself"
            )
            continue
        samples.append(Sample(line.metric, line.value, line.iteration, line.unit, line.better))
    return OwnMetrics(tuple(samples), problem)
