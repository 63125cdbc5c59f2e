"""The document of campaigns that are pooled: ``equipoise.pooled``."""

from __future__ import annotations

from msgspec import Struct

from equipoise.model.quantities import Interval
from equipoise.model.result import VarianceByLevel

POOLED_SCHEMA = "equipoise.pooled/1"


class CommonRatio(Struct, frozen=True):
    """The ratio that all campaigns have in common, if they have one.

    It holds though each campaign stopped at its verdict, and after any number of campaigns.
    """

    ratio: float | None
    """e to the mean of the campaigns' log ratios, each weighted by its blocks."""
    ratio_ci: Interval
    """Ratios that all campaigns together do not exclude, at 95 %; ``None`` for no limit."""
    blocks: int
    """Blocks of all campaigns."""
    unknown_because: str | None = None
    """Why there is no common ratio."""


class PooledEffect(Struct, frozen=True):
    """The mean over campaigns that may differ, from the first blocks of each."""

    ratio: float
    """e to the mean of the log ratios, each replicate alike."""
    ratio_ci: Interval
    """Interval of the mean over such replicates, at 95 %; ``None`` for one replicate."""
    between_sd: float
    """Between campaigns, in log units, what they vary by within taken out; 0 at the least."""
    campaigns: int
    replicates: int
    """Hosts, if there are several; else boots, if there are several; else campaigns."""


class PooledCampaign(Struct, frozen=True):
    """One of the pooled campaigns."""

    id: str
    started: str
    boot: str
    kernel: str
    blocks: int
    host: str | None = None
    """Name of the host; null if the ledger names none."""


class PooledComparison(Struct, frozen=True):
    """One comparison in every campaign, and over all of them."""

    baseline: str
    candidate: str
    metric: str
    ratios: tuple[float | None, ...]
    """Ratio of each campaign; ``None`` where it has none."""
    pooled: PooledEffect
    common: CommonRatio
    first_blocks: tuple[int, ...]
    """Blocks of each campaign that ``pooled`` and ``by_level`` are from: those that it would have
    run whatever they showed."""
    by_level: VarianceByLevel | None = None
    """``None`` where no level is replicated."""


class PooledCampaigns(Struct, frozen=True):
    """Campaigns as levels; the whole document, in the order in which it is written."""

    schema: str
    study: str
    campaigns: tuple[PooledCampaign, ...]
    comparisons: tuple[PooledComparison, ...]
    hosts: int = 1
    """Hosts that the campaigns ran on."""
