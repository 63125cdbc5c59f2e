"""The experiment of LaLonde (1986) as causaldata ships it (Dehejia and Wahba's rows)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

NAMES = ("age", "educ", "black", "hisp", "married", "nodegr", "u74", "u75", "re75", "re74")


def lalonde() -> dict[str, NDArray[np.float64]]:
    """Ten covariates, ``treat`` and ``re78``; skips where causaldata is not installed."""
    causaldata = pytest.importorskip("causaldata", reason="needs causaldata (make dev)")
    frame = causaldata.nsw_mixtape.load_pandas().data
    names = {"hisp": "hisp", "married": "marr", "nodegr": "nodegree"}
    data = {
        name: np.asarray(frame[names.get(name, name)], dtype=np.float64)
        for name in ("treat", "age", "educ", "black", "hisp", "married", "nodegr")
    }
    for name in ("re74", "re75", "re78"):
        data[name] = np.asarray(frame[name], dtype=np.float64)
    data["u74"] = (data["re74"] == 0).astype(np.float64)
    data["u75"] = (data["re75"] == 0).astype(np.float64)
    return data
