"""Warnings that need no answer: of the columns, the clusters and the match."""

from __future__ import annotations

from equipoise.model.observation_result import Clustering
from equipoise.model.record import CampaignWarning
from equipoise.observation.clusters import LEAST
from equipoise.observation.mediators import is_mediator
from equipoise.observation.question import Question

MANY_DROPPED = 0.2
_FEW = 2 * LEAST


def cautions(
    question: Question,
    clustering: Clustering | None,
    method: str,
    dropped: float,
) -> tuple[CampaignWarning, ...]:
    """What a reader must know beside the answer.

    Parameters
    ----------
    method
        The one that was kept.
    dropped
        The share of the candidate's rows without a match.
    """
    found: list[CampaignWarning] = []
    changed = [
        name
        for name in (*(question.covariates or ()), *question.exact)
        if is_mediator(name, question.mediators)
    ]
    if changed:
        found.append(
            CampaignWarning(
                "mediator",
                f"the version itself changes {', '.join(changed)}: matching on it takes part of "
                "the effect away",
                "leave it out of --covariates, unless it was read before the trial",
            )
        )
    if clustering is None:
        found.append(
            CampaignWarning(
                "rows-independent",
                "no time, day, host or job is known: every row is taken as independent, and the "
                "interval is too narrow if they are not",
                "name what rows share with --cluster",
            )
        )
    elif min(clustering.with_candidate, clustering.with_baseline) < _FEW:
        found.append(
            CampaignWarning(
                "few-clusters",
                f"the interval rests on {clustering.with_candidate} clusters with the candidate "
                f"and {clustering.with_baseline} with the baseline ({clustering.by})",
                f"gather more: {_FEW} of each make it trustworthy",
            )
        )
    if dropped > MANY_DROPPED:
        found.append(
            CampaignWarning(
                "dropped",
                f"{100.0 * dropped:.0f} % of the candidate's rows have no comparable row",
                "read whom the answer is about; gather baseline rows like those dropped",
            )
        )
    if method != question.method:
        found.append(
            CampaignWarning(
                "another-method",
                f"{question.method} left a column unbalanced; the weights were searched instead",
                "--method genetic searches them at once",
            )
        )
    return tuple(found)
