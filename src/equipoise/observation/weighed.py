"""Rows that take part, matched, with the effect over the pairs on each scale."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.observation.effects import Found, found
from equipoise.observation.matching import Comparable, Tell, comparable
from equipoise.observation.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Weighed:
    """The match that was kept, and the effect over it.

    Attributes
    ----------
    on_log, plain
        On the log scale, where there is one, and as a difference.
    """

    kept: Comparable
    on_log: Found | None
    plain: Found


def weighed(prepared: Prepared, tell: Tell) -> Weighed:
    """Match, and estimate the effect on each scale.

    Raises
    ------
    UnusableInput
        Not a single pair is comparable.
    """
    question, covariates, treated = prepared.question, prepared.covariates, prepared.treated
    kept = comparable(
        covariates,
        treated,
        question.method,
        seed=question.seed,
        threads=question.threads,
        tell=tell,
    )
    tell("the effect and its errors")
    clusters, logs = prepared.clusters, prepared.logs
    plain = found(prepared.outcome, covariates, treated, kept, clusters)
    on_log = None if logs is None else found(logs, covariates, treated, kept, clusters)
    return Weighed(kept, on_log, plain)
