"""Why one condition of a campaign is slower, as far as is known: pure functions of its record."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation, ExtraTime, PartName, TimePart
from equipoise.stats.spread import KIND as SPREAD
from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.differences.changes import Difference
from equipoise.why.differences.compare import difference_between
from equipoise.why.differences.wording import where_the_time_goes
from equipoise.why.evidence.sources import (
    EvidenceSet,
    decode_evidence,
    latest_conditions,
    observations_of_pair,
)
from equipoise.why.experiment.outcome import tested_causes
from equipoise.why.gap import Gap, explains_gap, gaps_of

_PARTS: dict[str, PartName] = {
    "user_s": "user",
    "system_s": "system",
    "waiting_s": "waiting",
    "queueing_s": "queueing",
}


class GapEvidence(Struct, frozen=True):
    """A gap, and what its observations say of it."""

    gap: Gap
    evidence: EvidenceSet
    difference: Difference


def with_causes(
    document: ResultDocument, record: RunRecord, experiment: RunRecord | None
) -> ResultDocument:
    """Return the document with the causes of the gap that was observed last.

    Parameters
    ----------
    document
        The result of the campaign.
    record
        The campaign.
    experiment
        The campaign that tested the causes, if there is one.
    """
    evidence = latest_evidence(record)
    return _with(document, evidence, _causes(record, evidence, experiment))


def with_causes_of_gap(
    document: ResultDocument, record: RunRecord, gap: Gap, experiment: RunRecord | None = None
) -> ResultDocument:
    """Return the document with the causes of this gap, of several that were observed.

    Parameters
    ----------
    document
        The result of the campaign.
    record
        The campaign.
    gap
        The gap to explain.
    experiment
        The campaign that tested the causes, if there is one; the document knows it, too.
    """
    extra, comparison = document.extra_time, gap.comparison
    pair = (comparison.baseline, comparison.candidate)
    if extra is not None and (extra.baseline, extra.candidate) == pair:
        return document
    evidence = evidence_of_gap(record, gap)
    spread = tuple(one for one in document.why if one.kind == SPREAD)
    return _with(replace(document, why=spread), evidence, _causes(record, evidence, experiment))


def latest_evidence(record: RunRecord) -> GapEvidence | None:
    """Return what the observations of the gap that was observed last say; ``None`` without one."""
    conditions = latest_conditions(record.observations)
    gaps = gaps_of(record) if conditions else ()
    for gap in gaps:
        if gap.is_called and conditions <= {gap.contrast.baseline, gap.contrast.candidate}:
            return evidence_of_gap(record, gap)
    return None


def evidence_of_gap(record: RunRecord, gap: Gap) -> GapEvidence:
    """Return what the observations of a gap say; without any, what its trials' accounts say."""
    baseline, candidate = gap.contrast.baseline, gap.contrast.candidate
    observations = observations_of_pair(record.observations, baseline, candidate)
    evidence = decode_evidence(observations, baseline, candidate)
    conditions = (record.plan.conditions[baseline], record.plan.conditions[candidate])
    return GapEvidence(gap, evidence, difference_between(gap.trials, evidence, conditions))


def _with(
    document: ResultDocument, evidence: GapEvidence | None, explanations: tuple[Explanation, ...]
) -> ResultDocument:
    return replace(
        document,
        why=(*document.why, *explanations),
        extra_time=None if evidence is None else _extra_time(evidence),
    )


def _causes(
    record: RunRecord, evidence: GapEvidence | None, experiment: RunRecord | None
) -> tuple[Explanation, ...]:
    """Return the causes as an experiment showed them, else as evidence suggests, all open."""
    if record.plan.explains is not None:
        return tested_causes(record)
    if experiment is not None and (
        evidence is None or explains_gap(experiment, record, evidence.gap.contrast)
    ):
        return tested_causes(experiment)
    return () if evidence is None else suggested_causes(evidence.difference)


def _extra_time(evidence: GapEvidence) -> ExtraTime:
    """Return where the extra time goes."""
    comparison, difference = evidence.gap.comparison, evidence.difference
    names = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    gap_s = difference.gap.extra
    return ExtraTime(
        baseline=names["baseline"],
        candidate=names["candidate"],
        slower=names[difference.slower],
        gap_s=gap_s,
        gap_s_ci=difference.gap.extra_ci,
        parts=tuple(
            TimePart(
                part=_PARTS[name],
                baseline_s=change.baseline,
                candidate_s=change.candidate,
                extra_s=change.extra,
                extra_s_ci=change.extra_ci,
                share_of_gap=change.extra / gap_s if gap_s > 0 else None,
            )
            for name, change in difference.split.items()
        ),
        observed={
            source: (len(runs.baseline), len(runs.candidate))
            for source, runs in evidence.evidence.by_source().items()
            if runs.every
        },
        # Accounts that are not known stand beside each trial.
        unseen={
            source: remarks for source, remarks in difference.unseen.items() if source != "accounts"
        },
        summary=where_the_time_goes(difference),
    )
