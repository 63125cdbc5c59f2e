"""The result of a campaign as it is shown: with what a study and another result make of it."""

from __future__ import annotations

from dataclasses import replace

from equipoise.cli.study_findings import with_findings
from equipoise.cli.wanted import Wanted
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument


def shown_document(
    record: RunRecord, wanted: Wanted, experiment: RunRecord | None = None
) -> ResultDocument:
    """The result of a campaign, held against another one if that is wanted.

    Parameters
    ----------
    record
        As it is reported.
    experiment
        The campaign that tested what was found to cause a gap of it, as it is reported.

    Raises
    ------
    UnusableInput
        The two have nothing in common, or differ in what was not allowed to.
    """
    # `equipoise compare` starts before it knows that this is needed.
    from equipoise.why.campaigns import result_of

    document = with_findings(result_of(record, experiment))
    if wanted.against is None:
        return document
    from equipoise.analysis.reference import compare_with_reference
    from equipoise.cli.unlike import allowed_only

    judgement = record.plan.judgement
    held = compare_with_reference(
        wanted.against,
        document,
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
    )
    if wanted.allowed is None:
        return replace(document, against=held)
    told = allowed_only(held.differences, wanted.allowed)
    return replace(document, against=held, warnings=(*document.warnings, *told))
