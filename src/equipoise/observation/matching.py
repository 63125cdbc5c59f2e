"""Matching until the covariates are balanced: first nobody is dropped, then ever more are.

Only the covariates are looked at, never the outcome, so that trying again costs no honesty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.balance import Balance, match_balance
from equipoise.matching.frames import Covariates as Scored
from equipoise.matching.gen_match import gen_match
from equipoise.matching.match import MatchResult, match
from equipoise.matching.propensity import score_of
from equipoise.model.errors import UnusableInput
from equipoise.observation.covariates import Covariates

Values = NDArray[np.float64]

MOST_APART = 0.1
"""Standard deviations: beyond it a covariate is not balanced (Austin 2009)."""
FENCES: tuple[tuple[float | None, bool], ...] = (
    (None, False),
    *((caliper, is_on_all) for caliper in (0.25, 0.1, 0.05) for is_on_all in (False, True)),
)
"""Calipers in standard deviations, each tried only if what stands before it left a covariate
unbalanced: on the covariates that were not balanced so far, then on all."""
SEARCHED_PAIRS = 4_000_000
"""Weights are searched among rows of which no more could be paired, drawn by the seed, and used on
all: a candidate costs time in proportion, and a search looks at some thousand."""
POPULATION = 100

Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Fence:
    """How far a match may lie, in standard deviations, in the columns of these names."""

    caliper: float | None
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class Comparable:
    """The pairs that were kept, and how they came about.

    Attributes
    ----------
    points
        Shape (rows, columns): what rows were matched on.
    metric
        As ``match`` takes it.
    caliper, caliper_on, widths
        In standard deviations, on these columns; as ``match`` takes it. ``None`` without one.
    weights
        Of the columns of ``points``, where a search found them.
    """

    method: str
    points: Values
    metric: Any
    exact: tuple[bool, ...] | None
    caliper: float | None
    caliper_on: tuple[str, ...]
    widths: list[float] | None
    weights: dict[str, float]
    pairs: MatchResult
    balance: Balance

    @property
    def worst(self) -> float:
        """The largest standardized difference that is left, in standard deviations."""
        return worst_of(self.balance)

    @property
    def is_balanced(self) -> bool:
        """Whether no covariate differs by more than ``MOST_APART``."""
        return self.worst <= MOST_APART


def comparable(
    covariates: Covariates,
    treated: NDArray[np.bool_],
    method: str,
    *,
    seed: int,
    threads: int | None,
    tell: Tell,
) -> Comparable:
    """The first match that balances every covariate; if none does, the one that comes nearest.

    Without a caliper first, by the asked method and then by the genetic search; then the same
    with ever narrower calipers (``FENCES``), which drop those of the candidate's rows that have
    no like.

    Raises
    ------
    UnusableInput
        Not a single pair is comparable.
    """
    methods = dict.fromkeys((method, "genetic"))
    best: Comparable | None = None
    lacking: UnusableInput | None = None
    at_fault: frozenset[str] = frozenset()
    for caliper, is_on_all in FENCES:
        columns = frozenset(covariates.names) if is_on_all else at_fault
        for way in methods:
            tell(f"matching ({way}{'' if caliper is None else f', caliper {caliper:g}'})")
            try:
                found = _matched(covariates, treated, way, Fence(caliper, columns), seed, threads)
            except UnusableInput as error:
                lacking = lacking or error
                continue
            if found.is_balanced:
                return found
            if best is None or found.worst < best.worst:
                best = found
            at_fault |= {found.balance.variables[place] for place in unbalanced(found)}
        if best is None:
            break
    if best is not None:
        return best
    assert lacking is not None
    if not covariates.exact_names:
        raise lacking
    raise UnusableInput(
        f"not a single comparable pair: no value of {', '.join(covariates.exact_names)} was run "
        "by both",
        hint="leave a column out of --exact, or gather rows that share its values",
    ) from lacking


def again_without_replacement(
    found: Comparable, treated: NDArray[np.bool_], *, seed: int, threads: int | None
) -> MatchResult:
    """Pairs by the same distance in which every row serves once, for the bounds."""
    return match(
        None,
        treated,
        found.points,
        metric=found.metric,
        exact=_flags(found.exact),
        caliper=found.widths,
        replace=False,
        ties=False,
        seed=seed,
        threads=threads,
    )


def worst_of(balance: Balance) -> float:
    """The largest standardized difference after matching, in standard deviations."""
    assert balance.after is not None
    return max((abs(one.sdiff) / 100.0 for one in balance.after), default=0.0)


def _matched(
    covariates: Covariates,
    treated: NDArray[np.bool_],
    method: str,
    fence: Fence,
    seed: int,
    threads: int | None,
) -> Comparable:
    own, names = covariates.matrix, covariates.names
    if method == "propensity" and names:
        score = score_of(Scored(names, own, treated))
        own, names = score.linear[:, None], ("propensity",)
    points = np.ascontiguousarray(np.column_stack([own, covariates.exact]))
    every = (*names, *covariates.exact_names)
    exact = None
    if covariates.exact_names:
        exact = (*(False for _ in names), *(True for _ in covariates.exact_names))
    on = names if method == "propensity" else tuple(n for n in names if n in fence.columns)
    widths = None
    if fence.caliper is not None and on:
        widths = [fence.caliper if name in on else math.inf for name in every]
    metric: Any = "mahalanobis" if method == "mahalanobis" else "inverse_variance"
    weights: dict[str, float] = {}
    if method == "genetic" and len(names) > 1:
        rows = _searched(treated, seed)
        metric = gen_match(
            treated[rows],
            points[rows],
            covariates.matrix[rows],
            population=POPULATION,
            exact=_flags(exact),
            caliper=widths,
            seed=seed,
            threads=threads,
        ).to_metric()
        weights = dict(zip(every, metric.tolist(), strict=True))
    pairs = match(
        None,
        treated,
        points,
        metric=metric,
        exact=_flags(exact),
        caliper=widths,
        seed=seed,
        threads=threads,
    )
    balanced = covariates.matrix if covariates.names else covariates.exact
    balanced_names = covariates.names or covariates.exact_names
    balance = match_balance(
        dict(zip(balanced_names, balanced.T, strict=True)), treated, pairs, boot=0, ks=False
    )
    return Comparable(
        method,
        points,
        metric,
        exact,
        None if widths is None else fence.caliper,
        () if widths is None else on,
        widths,
        weights,
        pairs,
        balance,
    )


def _searched(treated: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """The rows among which weights are searched, both arms thinned alike."""
    arms = [np.flatnonzero(treated), np.flatnonzero(~treated)]
    share = math.sqrt(SEARCHED_PAIRS / (len(arms[0]) * len(arms[1])))
    if share >= 1.0:
        return np.arange(len(treated))
    draw = np.random.default_rng(seed)
    chosen = [draw.choice(arm, max(1, round(share * len(arm))), replace=False) for arm in arms]
    return np.sort(np.concatenate(chosen))


def _flags(exact: tuple[bool, ...] | None) -> list[bool] | None:
    return None if exact is None else list(exact)


def unbalanced(found: Comparable) -> Iterator[int]:
    """The places of the covariates that are not balanced, the worst first."""
    assert found.balance.after is not None
    apart = [abs(one.sdiff) / 100.0 for one in found.balance.after]
    order = sorted(range(len(apart)), key=lambda place: -apart[place])
    yield from (place for place in order if apart[place] > MOST_APART)
