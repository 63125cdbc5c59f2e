"""How well weights of the covariates balance them once units are matched by these weights.

Diamond and Sekhon 2013 (Review of Economics and Statistics 95(3)); Sekhon 2011 (JSS 42(7)).
Formulae, and where R's GenMatch differs: docs/genmatch.md.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from equipoise.matching.fitness_problem import FitnessOptions, FitnessProblem, fitness_problem
from equipoise.matching.validate import Floats

__all__ = ["FitnessOptions", "FitnessProblem", "fitness_problem", "match_fitness"]


def match_fitness(
    treat: ArrayLike,
    X: ArrayLike,
    balance: ArrayLike | None = None,
    w: Any = None,
    **options: Unpack[FitnessOptions],
) -> Floats:
    """The fitness of one candidate, or of several.

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated units, 0 for controls.
    X
        Shape (n, k), the covariates to match on: array or frame.
    balance
        Shape (n, b), the covariates to balance; by default X.
    w
        Shape (k,), a weight of 0 or more for each column of X, by which the squared differences
        of the standardised columns count; shape (c, k) for c candidates; by default all 1.
    options
        As those of ``fitness_problem``.

    Returns
    -------
    Shape (criteria,), or (c, criteria): to be compared lexically, the first one first. P-values
    ascend and are to be large; distances of distributions descend and are to be small.

    Raises
    ------
    UnusableInput
        If something cannot be used, naming column and rows, or a function given as ``fitness`` or
        ``loss`` raises or answers what cannot be compared, with the weights that did it.
    """
    problem = fitness_problem(treat, X, balance, **options)
    weights = np.ones(problem.columns) if w is None else np.asarray(w)
    criteria = problem.evaluate(weights)
    return criteria[0] if weights.ndim == 1 else criteria
