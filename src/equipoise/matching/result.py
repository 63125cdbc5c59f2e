"""What a match found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import require

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MatchResult:
    """The pairs, the effect and its errors.

    Rows count from 0. ``None`` stands where there is no number: all of an outcome's without an
    outcome, ``se`` where Abadie and Imbens give none (without replacement; a single unit).

    Parameters
    ----------
    estimate, estimate_unadjusted
        The effect with and without the bias adjustment, in units of the outcome.
    se, se_standard, se_conditional
        The error of Abadie and Imbens (2006); the one that takes pairs as independent; what the
        choice of these units adds to the error.
    t, p_value
        ``estimate`` over its error (``se_standard`` where there is no ``se``), two-sided normal.
    treated_index, control_index, weights
        Of each pair.
    dropped_index
        Units that had no, or too few, admissible matches.
    n, n_treated
        Rows and treated rows that took part (fewer than given with ``common_support``).
    n_weighted
        Sum of the pairs' weights.
    n_dropped
        How many units were dropped.
    effective_caliper
        Shape (columns,), units of each column; ``None`` without a caliper.
    estimand
        Whose effect it is.
    matched_treated
        Of each pair: whether it was the treated unit that a match was sought for.
    rows
        How many rows were given.
    """

    estimate: float | None
    se: float | None
    se_standard: float | None
    se_conditional: float | None
    estimate_unadjusted: float | None
    t: float | None
    p_value: float | None
    treated_index: Indices = field(repr=False)
    control_index: Indices = field(repr=False)
    weights: Floats = field(repr=False)
    dropped_index: Indices = field(repr=False)
    n: int
    n_treated: int
    n_weighted: float
    n_dropped: int
    effective_caliper: Floats | None
    estimand: str
    matched_treated: NDArray[np.bool_] = field(repr=False)
    rows: int

    def facts(self) -> list[tuple[str, str]]:
        """The effect, its error and how many units it rests on: what, and its value."""
        lines: list[tuple[str, str]] = []
        if self.estimate is not None:
            lines.append(("Estimate", f"{self.estimate:.5g}"))
            if self.se is not None:
                lines.append(("Abadie-Imbens error", f"{self.se:.5g}"))
            elif self.se_standard is not None:
                lines.append(("Error (pairs independent)", f"{self.se_standard:.5g}"))
            if self.t is not None and self.p_value is not None:
                lines.append(("t", f"{self.t:.5g}"))
                lines.append(("p-value", f"{self.p_value:.5g}"))
        lines += [
            ("Estimand", self.estimand),
            ("Observations", f"{self.n}"),
            ("Treated", f"{self.n_treated}"),
            ("Matched observations", f"{self.n_weighted:.6g}"),
            ("Matched pairs (unweighted)", f"{len(self.weights)}"),
            ("Dropped", f"{self.n_dropped}"),
        ]
        return lines

    def summary(self) -> str:
        """The facts, a line each."""
        lines = self.facts()
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from equipoise.report.renderers.notebook import facts

        return facts(self.facts())

    def to_frame(self) -> DataFrame:
        """A row for each pair: ``treated_index``, ``control_index``, ``weight`` (pandas).

        Raises
        ------
        UnusableInput
            pandas is not installed.
        """
        pandas = require("pandas", "frames")
        columns: dict[str, Any] = {
            "treated_index": self.treated_index,
            "control_index": self.control_index,
            "weight": self.weights,
        }
        frame: DataFrame = pandas.DataFrame(columns)
        return frame
