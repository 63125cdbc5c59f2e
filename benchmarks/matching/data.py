"""The data that all sides are timed on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
COLUMNS = ("age", "educ", "black", "hisp", "married", "nodegr", "re74", "re75", "u74", "u75")
"""The covariates of the stacked data."""


@dataclass(frozen=True, slots=True)
class Sample:
    """``outcome`` and ``treatment`` (n,), ``covariates`` (n, k)."""

    outcome: Floats
    treatment: Floats
    covariates: Floats


def normal(rows: int, columns: int = 10, share: float = 0.25) -> Sample:
    """Independent normal covariates; so large a share is treated, at random; the effect is 1."""
    generator = np.random.default_rng(rows)
    covariates = generator.normal(size=(rows, columns))
    treatment = (generator.random(rows) < share).astype(np.float64)
    outcome = covariates.sum(axis=1) + treatment + generator.normal(size=rows)
    return Sample(outcome, treatment, covariates)


def stacked(copies: int) -> Sample:
    """The 445 rows of the NSW experiment so many times: the sizes of Sekhon (2006)."""
    from equipoise_matching.matching.datasets import lalonde

    frame = lalonde()
    return Sample(
        np.tile(frame["re78"].to_numpy(np.float64), copies),
        np.tile(frame["treat"].to_numpy(np.float64), copies),
        np.tile(frame[list(COLUMNS)].to_numpy(np.float64), (copies, 1)),
    )
