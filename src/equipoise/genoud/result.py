"""What genoud found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.genoud.drive import Generation

if TYPE_CHECKING:
    from altair import LayerChart

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GenoudResult:
    """The best individual, and how the search came to it.

    Parameters
    ----------
    value
        The function's best value; shape (criteria,) if the search was lexical.
    par
        Shape (nvars,): where it lies.
    gradients
        Shape (nvars,): the gradient there; ``None`` for whole numbers, lexical searches and
        without ``bfgs`` or ``gradient``.
    generations
        How many generations were bred.
    peak_generation
        When the best last improved by more than the tolerance.
    population
        How many individuals a generation had; it may be more than asked for.
    operators
        How many individuals of a generation came from each of the nine operators.
    stopped_because
        "no improvement", "generation limit" or "callback".
    evaluations
        How often the function was evaluated in all.
    seed
        Gives the same answer again.
    history
        A generation each, the random one first.
    """

    value: float | Floats
    par: Floats
    gradients: Floats | None
    generations: int
    peak_generation: int
    population: int
    operators: tuple[int, ...]
    stopped_because: str
    evaluations: int
    seed: int
    history: tuple[Generation, ...] = field(repr=False)

    def summary(self) -> str:
        """A few lines with the value, the point and how the search came to it."""
        return "\n".join(f"{name:<12} {what}" for name, what in self._facts())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from equipoise.report.html_table import facts

        return facts(self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        value = f"{self.value:.8g}" if isinstance(self.value, float) else str(self.value)
        with np.printoptions(precision=6, threshold=12):
            return [
                ("Value", value),
                ("Parameters", str(self.par)),
                ("Gradients", "none" if self.gradients is None else str(self.gradients)),
                ("Generations", f"{self.generations}, the peak at {self.peak_generation}"),
                ("Stopped by", self.stopped_because),
                ("Evaluations", f"{self.evaluations:,}"),
                ("Population", f"{self.population:,} (P1 to P9: {list(self.operators)})"),
            ]

    def plot(self) -> LayerChart:
        """The best value and the median over the generations; needs ``equipoise[report]``."""
        from equipoise.figures.search import search_values

        rows: list[dict[str, Any]] = [
            {
                "generation": one.number,
                "best": float(one.value[0]),
                "median": one.median,
                "evaluations": one.evaluations,
            }
            for one in self.history
        ]
        return search_values(rows, peak=self.peak_generation)
