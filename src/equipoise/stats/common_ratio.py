"""One ratio for several campaigns that stopped when they pleased.

The mean of the campaigns' ratios is too far from 1 where each stopped at its verdict: it stops when
the effect looks large. What a campaign multiplies a bettor's wealth by is a test martingale,
whenever it stops; over campaigns one after the other it is one still. So the ratios that it does
not exclude are a confidence set (crates/verdict, ``common``), whatever stopped each campaign and
however many there are. It presumes that the campaigns have one ratio in common.

For campaigns that differ, the mean over them can be told only from what each would have measured
whatever it showed: its blocks up to the first at which it could have stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise._native import common_interval
from equipoise.model.pooled import CommonRatio
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import finite_ratio

NONE_FITS = "no common ratio fits all campaigns: they differ"


def common_ratio(campaigns: Sequence[PairedBlocks], *, level: float = 0.05) -> CommonRatio:
    """Return the ratio that campaigns have in common, at coverage 1 - ``level``.

    Parameters
    ----------
    campaigns
        Blocks of the same comparison in each, in the order in which they ran.
    """
    blocks = sum(len(one) for one in campaigns)
    low, high = common_interval([one.engine for one in campaigns], level)
    if low > high:
        return CommonRatio(None, (None, None), blocks, NONE_FITS)
    centres = [(one.engine.centre(), len(one)) for one in campaigns]
    known = [(centre[0], count) for centre, count in centres if centre is not None]
    ratio = None
    if known and all(math.isfinite(centre) for centre, _ in known):
        weighted = sum(centre * count for centre, count in known)
        middle = weighted / sum(count for _, count in known)
        ratio = finite_ratio(min(max(middle, low), high))
    return CommonRatio(ratio, (finite_ratio(low), finite_ratio(high)), blocks)
