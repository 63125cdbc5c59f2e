"""A Python function as an evaluator of batches; its errors name the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.genoud.executors import batch_evaluator
from equipoise.genoud.worker import EvaluationFailed, point_text

Floats = NDArray[np.float64]


class Batches:
    """Evaluator of a function at the rows of a batch: (batch, nvars) to (batch, criteria).

    Parameters
    ----------
    function
        Function of one point, or of all rows at once if ``vectorized``.
    executor
        As in ``batch_evaluator``; ``None`` evaluates here.
    criteria
        Number of values of each point; ``None`` takes that of the first point.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        vectorized: bool,
        executor: Any = None,
        criteria: int | None = None,
    ) -> None:
        self._evaluate = batch_evaluator(
            Rows(function, vectorized=vectorized, criteria=criteria), executor
        )
        self.evaluations = 0

    def __call__(self, points: Floats) -> Floats:
        """Return the values of the rows, none of them NaN."""
        values = self.leniently(points)
        bad = np.flatnonzero(np.isnan(values).any(axis=1))
        if len(bad):
            raise EvaluationFailed(f"the function returned NaN at {point_text(points[bad[0]])}")
        return values

    def leniently(self, points: Floats) -> Floats:
        """Return the values of the rows, as the function returned them."""
        self.evaluations += len(points)
        return self._evaluate(points)

    def __enter__(self) -> Batches:
        """Return the evaluator, for a ``with`` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release what was made for the evaluation."""
        self._evaluate.close()


class Rows:
    """The function as an evaluator that can be pickled; parameters as in ``Batches``."""

    def __init__(
        self, function: Callable[[Any], Any], *, vectorized: bool, criteria: int | None
    ) -> None:
        self._function = function
        self._vectorized = vectorized
        self._criteria = criteria

    def __call__(self, points: Floats) -> Floats:
        """Return the values of the rows."""
        return self._all_at_once(points) if self._vectorized else self._one_by_one(points)

    def _all_at_once(self, points: Floats) -> Floats:
        try:
            values = np.asarray(self._function(points.copy()), dtype=np.float64)
        except Exception as error:
            raise EvaluationFailed(
                f"the function raised {raised(error)} in a batch of {len(points)} points, the "
                f"first at {point_text(points[0])}"
            ) from error
        if values.ndim == 1:
            values = values[:, np.newaxis]
        if values.ndim != 2 or len(values) != len(points):
            raise EvaluationFailed(
                f"the vectorized function returned shape {values.shape} for {len(points)} points, "
                f"the first at {point_text(points[0])}"
            )
        self._same_length(values.shape[1], points[0])
        return values

    def _one_by_one(self, points: Floats) -> Floats:
        rows = []
        for point in points:
            try:
                # Of a copy: the function may write into what it is given.
                outcome = self._function(point.copy())
            except Exception as error:
                raise EvaluationFailed(
                    f"the function raised {raised(error)} at {point_text(point)}"
                ) from error
            if outcome is None:
                # NumPy would make NaN of a forgotten return.
                raise EvaluationFailed(f"the function returned None at {point_text(point)}")
            try:
                row = np.atleast_1d(np.asarray(outcome, dtype=np.float64))
            except (TypeError, ValueError) as error:
                raise EvaluationFailed(
                    f"the function returned {type(outcome).__name__}, no number, at "
                    f"{point_text(point)}"
                ) from error
            if row.ndim != 1 or len(row) == 0:
                raise EvaluationFailed(
                    f"the function returned shape {row.shape} at {point_text(point)}: "
                    "a number or a vector is needed"
                )
            self._same_length(len(row), point)
            rows.append(row)
        return np.array(rows, dtype=np.float64)

    def _same_length(self, length: int, point: Floats) -> None:
        if self._criteria is None:
            self._criteria = length
        if length != self._criteria:
            raise EvaluationFailed(
                f"the function returned {length} values at {point_text(point)} and "
                f"{self._criteria} elsewhere: there must be as many at every point"
            )


def raised(error: Exception) -> str:
    """Return the exception in a few words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
