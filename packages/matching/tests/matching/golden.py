"""R's answers (packages/matching/tests/golden), and their data."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def columns(name: str) -> dict[str, NDArray[np.float64]]:
    """Return the columns of packages/matching/tests/golden/data_<name>.csv."""
    with (GOLDEN / f"data_{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def answers(name: str) -> Any:
    """Return R's answers in packages/matching/tests/golden/<name>.json."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


METRICS = {1: "inverse_variance", 2: "mahalanobis"}


def options(case: dict[str, Any], data: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Return R's options under our names; rows count from 0."""
    theirs = dict(case["options"])
    ours: dict[str, Any] = {
        "estimand": theirs.pop("estimand"),
        "m": theirs.pop("M"),
        "r_compatible": True,
    }
    weight = theirs.pop("Weight", 1)
    ours["metric"] = theirs.pop("Weight.matrix") if weight == 3 else METRICS[weight]
    if "weights" in theirs:
        ours["weights"] = data[theirs.pop("weights")]
    if "restrict" in theirs:
        ours["restrict"] = np.array(theirs.pop("restrict")) - [1, 1, 0]
    if "sample" in theirs:
        ours["variance"] = "sample" if theirs.pop("sample") else "population"
    names = {
        "Var.calc": "variance_neighbors",
        "BiasAdjust": "bias_adjust",
        "CommonSupport": "common_support",
        "caliper": "caliper",
        "exact": "exact",
        "replace": "replace",
        "ties": "ties",
    }
    return ours | {names[name]: value for name, value in theirs.items()}
