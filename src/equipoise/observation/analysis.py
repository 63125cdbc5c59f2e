"""The story of ``observe``: from a log and a question to what was found."""

from __future__ import annotations

from equipoise.model.observation_result import ObservationResult
from equipoise.model.record import CampaignWarning
from equipoise.observation.answered import answered
from equipoise.observation.described import described
from equipoise.observation.matching import Tell
from equipoise.observation.prepared import prepare
from equipoise.observation.question import Log, Question
from equipoise.observation.refusal import refusal_of
from equipoise.observation.weighed import weighed


def observe(
    log: Log,
    question: Question,
    *,
    source: str,
    left_out: dict[str, int] | None = None,
    told: tuple[CampaignWarning, ...] = (),
    tell: Tell = lambda _: None,
) -> ObservationResult:
    """The effect of the candidate among comparable rows, or why there is none.

    Parameters
    ----------
    log
        The columns.
    source
        Where they come from, for the document.
    left_out
        RowCounts that were left out before, by the reason.
    told
        Warnings of how the log was read, which come first.
    tell
        Told what is done next, in words.

    Raises
    ------
    UnusableInput
        The question cannot be put to this log: naming column, rows and the hint.
    """
    prepared = prepare(log, question, left_out or {})
    one = weighed(prepared, tell)
    kept, plain, on_log = one.kept, one.plain, one.on_log
    refusal = refusal_of(
        kept, prepared.covariates, prepared.treated, plain, prepared.clusters, prepared.arms
    )
    document = described(prepared, kept, plain, refusal, source=source, told=told)
    if refusal is not None:
        return document
    return answered(document, prepared, kept, on_log, plain, tell)
