"""The document of pooled campaigns: ``equipoise.pooled``."""

from __future__ import annotations

from msgspec import Struct

from equipoise.model.quantities import Interval
from equipoise.model.result import VarianceByLevel

POOLED_SCHEMA = "equipoise.pooled/1"


class CommonRatio(Struct, frozen=True):
    """The ratio that all campaigns have in common, if there is one.

    It is valid even though each campaign stopped at its verdict, and after any number of campaigns.
    """

    ratio: float | None
    """e to the mean of the campaigns' log ratios, each weighted by its blocks."""
    ratio_ci: Interval
    """Ratios that all campaigns together do not exclude, at 95 %; ``None`` for no limit."""
    blocks: int
    """Number of blocks of all campaigns."""
    unknown_because: str | None = None
    """Reason why there is no common ratio."""


class PooledEffect(Struct, frozen=True):
    """The mean effect of campaigns that may differ, from the first blocks of each."""

    ratio: float
    """e to the mean of the log ratios, with equal weights for the replicates."""
    ratio_ci: Interval
    """Interval of the mean over such replicates, at 95 %; ``None`` for one replicate."""
    between_sd: float
    """Standard deviation between campaigns, in log units, without that within; at least 0."""
    campaigns: int
    replicates: int
    """Number of hosts, if there are several; else of boots, if there are several; else of
    campaigns."""


class PooledCampaign(Struct, frozen=True):
    """One of the pooled campaigns."""

    id: str
    started: str
    boot: str
    kernel: str
    blocks: int
    host: str | None = None
    """Name of the host; null if unknown."""


class PooledComparison(Struct, frozen=True):
    """One comparison in every campaign, and over all of them."""

    baseline: str
    candidate: str
    metric: str
    ratios: tuple[float | None, ...]
    """Ratio of each campaign; ``None`` if it has none."""
    pooled: PooledEffect
    common: CommonRatio
    first_blocks: tuple[int, ...]
    """Number of blocks of each campaign that ``pooled`` and ``by_level`` use: those before the
    first block at which it could have stopped."""
    by_level: VarianceByLevel | None = None
    """Variance by level; ``None`` if no level is replicated."""


class PooledCampaigns(Struct, frozen=True):
    """The whole document, in the order in which it is written."""

    schema: str
    study: str
    campaigns: tuple[PooledCampaign, ...]
    comparisons: tuple[PooledComparison, ...]
    hosts: int = 1
    """Number of hosts of the campaigns."""
