"""What costs may be adjusted by, and what an adjustment did."""

from __future__ import annotations

from msgspec import Struct

from equipoise.model.interval import Interval

COVARIATES_BEFORE_TRIAL = (
    "load_1_minute",
    "pressure_cpu_before",
    "pressure_memory_before",
    "pressure_io_before",
    "steal_before",
    "frequency_before_hz",
    "temperature_c",
)
"""Covariates that are read before a trial begins, so that its own program cannot move them.

The trial before can: pressure and steal are rates since it began, and load, frequency and
temperature follow it.
"""

MOST_COVARIATES = 8
"""At most this many covariates are tried (`MOST_COVARIATES` in crates/verdict)."""


class Adjustment(Struct, frozen=True):
    """What adjusting costs by a covariate, read before each trial, did; the numbers without it."""

    covariate: str
    """Covariate that adjusted most blocks."""
    blocks: int
    """Blocks that were adjusted; none before past blocks showed that it pays."""
    spread_ratio: float
    """Spread of the adjusted block differences over that of the differences."""
    unadjusted_ratio: float | None
    """Typical ratio without an adjustment."""
    unadjusted_ratio_ci: Interval
    """Its interval, at the level of the comparison."""
    summary: str
    """Sentence on it; empty where it saved under 1 % of the blocks."""
