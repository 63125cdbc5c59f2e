"""The document of pooled campaigns: ``equipoise.pooled``."""

from __future__ import annotations

from msgspec import Struct

from equipoise.model.quantities import Interval
from equipoise.model.result import VarianceByLevel

POOLED_SCHEMA = "equipoise.pooled/1"


class CommonRatio(Struct, frozen=True):
    """The ratio that all campaigns have in common, if any.

    It is valid although each campaign stopped at its verdict, and after any number of campaigns.
    """

    ratio: float | None
    """e to the mean of the campaigns' log ratios, each weighted by its blocks."""
    ratio_ci: Interval
    """Ratios that the campaigns together do not exclude, at 95 %; ``None`` for an unlimited end."""
    blocks: int
    """Total number of blocks of the campaigns."""
    unknown_because: str | None = None
    """Reason why there is no common ratio."""


class PooledEffect(Struct, frozen=True):
    """The mean effect of campaigns that may differ, from the first blocks of each."""

    ratio: float
    """e to the mean of the log ratios, with equal weights for the replicates."""
    ratio_ci: Interval
    """Interval of the mean over replicates, at 95 %; ``None`` for a single replicate."""
    between_sd: float
    """Standard deviation between campaigns, in log units, without the variation within them."""
    campaigns: int
    replicates: int
    """Number of hosts; for a single host number of boots; for a single boot number of campaigns."""


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
    """One comparison in each campaign, and over all campaigns."""

    baseline: str
    candidate: str
    metric: str
    ratios: tuple[float | None, ...]
    """Ratio in each campaign; ``None`` for a campaign without a ratio."""
    pooled: PooledEffect
    common: CommonRatio
    first_blocks: tuple[int, ...]
    """Number of blocks of each campaign, before it could stop, that ``pooled`` and ``by_level``
    use."""
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
