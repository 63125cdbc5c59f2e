"""Data of R's answers on balance, and a plain matcher that gives R's pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas
from numpy.typing import NDArray

from packages.matching.tests.matching.golden import GOLDEN


@dataclass(frozen=True)
class Pairs:
    """Pairs of a match, as ``match_balance`` reads them."""

    treated_index: NDArray[np.intp]
    control_index: NDArray[np.intp]
    weights: NDArray[np.float64]


def data(name: str) -> pandas.DataFrame:
    """The data of one case."""
    return pandas.read_csv(GOLDEN / f"data_{name}.csv")


def nearest(matrix: NDArray[np.float64], treated: NDArray[np.bool_]) -> Pairs:
    """Every treated row with all its nearest controls, by inverse variances.

    Written from the formulae of docs/methods/matching.md, and slow: it owes nothing to the
    engine.
    """
    scaled = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0, ddof=1)
    controls = np.flatnonzero(~treated)
    rows: list[int] = []
    others: list[int] = []
    weights: list[float] = []
    for row in np.flatnonzero(treated):
        distances = ((scaled[controls] - scaled[row]) ** 2).sum(axis=1)
        near = controls[distances <= distances.min() + 1e-5 + 1e-10]
        rows += [int(row)] * len(near)
        others += near.tolist()
        weights += [1 / len(near)] * len(near)
    return Pairs(np.array(rows), np.array(others), np.array(weights))
