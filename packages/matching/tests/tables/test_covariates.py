"""Covariates for a design: texts and missing values become indicators."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise_matching.designs.units import design_units
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.tables import design_covariates


def test_all_rows_stay_and_a_design_takes_the_covariates() -> None:
    table = {
        "wage": [1.0, np.nan, 3.0, np.nan],
        "sex": ["f", None, "m", "f"],
        "age": [20, 30, 40, 50],
    }
    covariates = design_covariates(table, ["wage", "sex", "age"])
    assert {name: column.tolist() for name, column in covariates.items()} == {
        "wage": [1.0, 2.0, 3.0, 2.0],
        "sex=f": [1.0, 0.0, 0.0, 1.0],
        "sex=m": [0.0, 0.0, 1.0, 0.0],
        "age": [20.0, 30.0, 40.0, 50.0],
        "wage is missing": [0.0, 1.0, 0.0, 1.0],
    }
    assert len(design_units([0, 1, 0, 1], covariates)) == 4


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (["height"], "no column height"),
        ([], "no covariate"),
        (["empty"], "missing in every row"),
    ],
)
def test_columns_that_cannot_be_used_are_named(covariates: list[str], message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        design_covariates({"age": [1.0, 2.0], "empty": [np.nan, np.nan]}, covariates)
