"""The story of ``observe``: from a log and a question to what was found."""

from __future__ import annotations

from equipoise.model.observed import Caution, Observed
from equipoise.observe.answered import answered
from equipoise.observe.described import described
from equipoise.observe.effects import found
from equipoise.observe.matching import Tell, comparable
from equipoise.observe.prepared import prepare
from equipoise.observe.question import Log, Question
from equipoise.observe.refusal import refusal_of


def observe(
    log: Log,
    question: Question,
    *,
    source: str,
    left_out: dict[str, int] | None = None,
    told: tuple[Caution, ...] = (),
    tell: Tell = lambda _: None,
) -> Observed:
    """The effect of the candidate among comparable rows, or why there is none.

    Parameters
    ----------
    log
        The columns.
    source
        Where they come from, for the document.
    left_out
        Rows that were left out before, by the reason.
    told
        Warnings of how the log was read, which come first.
    tell
        Told what is done next, in words.

    Raises
    ------
    UnusableInput
        The question cannot be put to this log: naming column, rows and the mend.
    """
    prepared = prepare(log, question, left_out or {})
    covariates, treated = prepared.covariates, prepared.treated
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
    refusal = refusal_of(kept, covariates, treated, plain, clusters, prepared.arms)
    document = described(prepared, kept, plain, refusal, source=source, told=told)
    if refusal is not None:
        return document
    return answered(document, prepared, kept, on_log, plain, tell)
