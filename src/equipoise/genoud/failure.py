"""A function that could not be evaluated, and where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput

Floats = NDArray[np.float64]


class EvaluationFailed(UnusableInput):
    """Exit status 2: the function could not be evaluated; names the parameters that did it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what,
            hint="return a number at every point of the domain (infinity where it is worthless), "
            "or narrow the bounds",
        )

    def __reduce__(self) -> tuple[type[EvaluationFailed], tuple[str]]:
        """Pickled by what is wrong: the hint is added anew where it arrives."""
        return EvaluationFailed, (self.what,)


def words(point: Floats) -> str:
    """The parameters, to be read and pasted."""
    return f"par = {[float(value) for value in point]}"
