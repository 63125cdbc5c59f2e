"""Campaigns of the same commands and what holds over all of them, as frozen data.

Field names and their order are the outward form ``equipoise.pooled/2`` of ``show --pool --json``.
"""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.result import ByLevel, Interval

POOLED_SCHEMA = "equipoise.pooled/2"


@dataclass(frozen=True, slots=True)
class Pooled:
    """An effect over campaigns."""

    ratio: float
    """e to the mean of the log ratios, each replicate alike."""
    ratio_ci: Interval
    """For the mean over such replicates, at 95 %; ``None`` if there is one only."""
    between_sd: float
    """Between campaigns, in log units, what they vary by within taken out; 0 at the least."""
    campaigns: int
    replicates: int
    """Boots, if there are several; else campaigns."""


@dataclass(frozen=True, slots=True)
class PooledCampaign:
    """One of the campaigns."""

    id: str
    started: str
    boot: str
    kernel: str
    blocks: int


@dataclass(frozen=True, slots=True)
class PooledComparison:
    """One comparison in every campaign, and over all of them."""

    baseline: str
    candidate: str
    metric: str
    ratios: tuple[float | None, ...]
    """By campaign; ``None`` where it has none."""
    pooled: Pooled
    by_level: ByLevel | None = None
    """``None`` where no level is replicated."""


@dataclass(frozen=True, slots=True)
class PooledCampaigns:
    """Campaigns as levels; the whole document, in the order in which it is written."""

    schema: str
    study: str
    campaigns: tuple[PooledCampaign, ...]
    comparisons: tuple[PooledComparison, ...]
