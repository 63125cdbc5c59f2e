"""Refusals and warnings: why no effect is reported, and what a reader must know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.matching.match import MANY_WITHOUT_NEIGHBORS
from equipoise.model.observation_result import Clustering, MissingRows, Placebo, Refusal
from equipoise.model.record import CampaignWarning
from equipoise.observation.clusters import MIN_CLUSTERS
from equipoise.observation.covariates import is_mediator
from equipoise.observation.matching import MAX_DIFFERENCE
from equipoise.observation.question import Question
from equipoise.observation.sample import Arms

MANY_DROPPED = 0.2
_ENOUGH_CLUSTERS = 2 * MIN_CLUSTERS
_UNLIKELY = 0.01
"""P-value of Cochran's Q below which a warning is given."""


def unbalanced_refusal(missing: Sequence[MissingRows], arms: Arms) -> Refusal:
    """Refuse an effect because a covariate stays unbalanced.

    ``missing`` are the rows that the log lacks, by unbalanced covariate, the worst first.
    """
    worst = missing[0]
    others = f", and {len(missing) - 1} more columns differ" if len(missing) > 1 else ""
    return Refusal(
        "unbalanced",
        f"{unbalanced_clause(worst.column, worst.difference)} after the best matching{others}",
        f"collect rows of {arms.baseline} with {worst.column} between {worst.low:.4g} and "
        f"{worst.high:.4g}: the log has {worst.baseline_rows:,}, and {worst.candidate_rows:,} of "
        f"{arms.candidate}",
        tuple(missing),
    )


def unbalanced_clause(column: str, difference: float | None) -> str:
    """Return by how much a column still differs, and the limit."""
    size = "infinitely many" if difference is None else f"{abs(difference):.2f}"
    return f"{column} still differs by {size} standard deviations (limit {MAX_DIFFERENCE:g})"


def few_clusters_refusal(clustering: Clustering, arms: Arms) -> Refusal | None:
    """Refuse an effect whose error would be a guess; ``None`` with enough clusters."""
    counts = {
        arms.candidate: clustering.with_candidate,
        arms.baseline: clustering.with_baseline,
    }
    fewest = min(counts, key=lambda name: counts[name])
    if counts[fewest] >= MIN_CLUSTERS:
        return None
    return Refusal(
        "few-clusters",
        f"the comparable rows of {fewest} come from only {counts[fewest]} clusters "
        f"({clustering.by}); an error needs at least {MIN_CLUSTERS}",
        "collect rows from more of them, or name a finer column with --cluster; --cluster none "
        "treats all rows as independent",
    )


def sample_warnings(
    question: Question,
    clustering: Clustering | None,
    method: str,
    dropped: float,
    without_neighbors: float,
) -> Iterator[CampaignWarning]:
    """Warn of the columns, the clusters and the match, whatever the answer.

    ``method`` is the one that was used, ``dropped`` the share of the candidate's rows without a
    match, ``without_neighbors`` that of the matched rows without a neighbour of the same version.
    """
    mediators = [
        name
        for name in (*question.matched_on, *question.exact)
        if is_mediator(name, question.mediators)
    ]
    if mediators:
        yield CampaignWarning(
            "mediator",
            f"the version itself changes {', '.join(mediators)}: matching on it removes part of "
            "the effect",
            "leave it out of --covariates, unless it was measured before the trial",
        )
    if clustering is None:
        yield CampaignWarning(
            "rows-independent",
            "the log has no known time, day, host or job: every row counts as independent, and "
            "the interval is too narrow if rows are not",
            "name the column that dependent rows share with --cluster",
        )
    elif min(clustering.with_candidate, clustering.with_baseline) < _ENOUGH_CLUSTERS:
        yield CampaignWarning(
            "few-clusters",
            f"the interval rests on {clustering.with_candidate} clusters with the candidate "
            f"and {clustering.with_baseline} with the baseline ({clustering.by})",
            f"collect more rows: an interval that can be trusted needs {_ENOUGH_CLUSTERS} of each",
        )
    if clustering is None and without_neighbors > MANY_WITHOUT_NEIGHBORS:
        yield CampaignWarning(
            "few-neighbours",
            f"{100.0 * without_neighbors:.0f} % of the matched rows have no comparable row of the "
            "same version: they share one variance, and the interval is too narrow where the "
            "baseline is noisier",
            "name fewer columns with --exact, or collect more rows",
        )
    if dropped > MANY_DROPPED:
        yield CampaignWarning(
            "dropped",
            f"{100.0 * dropped:.0f} % of the candidate's rows have no comparable row",
            "read which rows the answer is about; collect baseline rows like the dropped ones",
        )
    if method != question.method:
        yield CampaignWarning(
            "another-method",
            f"{question.method} left a column unbalanced, so the genetic search was used",
            "--method genetic starts with the search",
        )


def answer_warnings(
    placebos: Sequence[Placebo], periods: int, chance_of_equality: float | None
) -> Iterator[CampaignWarning]:
    """Warn of placebos that show an effect, and of an effect that changes.

    ``chance_of_equality`` is the p-value for one common effect in all periods.
    """
    for placebo in placebos:
        if placebo.shows_effect:
            yield CampaignWarning(
                f"placebo-{placebo.kind}",
                placebo.summary,
                "find what differs and make it a covariate; do not trust the answer before",
            )
    if chance_of_equality is not None and chance_of_equality < _UNLIKELY:
        yield CampaignWarning(
            "effect-changes",
            f"the effect changes in time: Cochran's p = {chance_of_equality:.2g} over {periods} "
            "periods",
            "read the effect of each period, not their mean; find out what changed between them",
        )
