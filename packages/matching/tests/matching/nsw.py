"""The experiment of LaLonde (1986) as causaldata ships it (Dehejia and Wahba's rows)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise_matching.matching import datasets

NAMES = ("age", "educ", "black", "hisp", "married", "nodegr", "u74", "u75", "re75", "re74")


def lalonde() -> dict[str, NDArray[np.float64]]:
    """Ten covariates, ``treat`` and ``re78``; skips where causaldata is not installed."""
    pytest.importorskip("causaldata", reason="needs causaldata (make dev)")
    frame = datasets.lalonde()
    return {name: frame[name].to_numpy(dtype=np.float64) for name in frame}
