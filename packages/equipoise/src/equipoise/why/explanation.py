"""Explain the gap of a campaign from its record, without running anything."""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation, ExtraTime, PartName, TimePart
from equipoise.stats.spread import CHANCE_KIND
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
from equipoise.why.gap import Gap, explains_gap, gaps_of
from equipoise.why.kind import why_kind


class GapEvidence(Struct, frozen=True):
    """A gap, the observations of its conditions, and the differences that they show."""

    gap: Gap
    evidence: EvidenceSet
    difference: Difference


def with_causes(
    document: ResultDocument,
    record: RunRecord,
    experiment: RunRecord | None,
    gap: Gap | None = None,
) -> ResultDocument:
    """Return the document of a campaign with the causes of a gap.

    Without ``gap``, the causes are those of the gap that was observed last. ``experiment`` is the
    campaign that tested the causes, if there is one.
    """
    if gap is None:
        evidence = latest_evidence(record)
    else:
        names = (gap.comparison.baseline, gap.comparison.candidate)
        known_time = document.extra_time
        if known_time is not None and (known_time.baseline, known_time.candidate) == names:
            return document
        evidence = evidence_of_gap(record, gap)
        spread_causes = tuple(cause for cause in document.why if cause.kind == CHANCE_KIND)
        document = replace(document, why=spread_causes)
    extra_time = None if evidence is None else _extra_time(evidence)
    causes = _causes(record, evidence, experiment)
    if evidence is not None:
        contrast = evidence.gap.contrast
        if experiment is not None and not explains_gap(experiment, record, contrast):
            experiment = None
        kind = why_kind(record.plan.terms)
        document = kind.with_explanation(document, record, evidence, causes, experiment)
    return replace(document, why=(*document.why, *causes), extra_time=extra_time)


def latest_evidence(record: RunRecord) -> GapEvidence | None:
    """Return the evidence of the gap that was observed last; ``None`` if none was observed."""
    conditions = latest_conditions(record.observations)
    for gap in gaps_of(record) if conditions else ():
        if gap.is_explainable and conditions <= {*gap.pair}:
            return evidence_of_gap(record, gap)
    return None


def evidence_of_gap(record: RunRecord, gap: Gap) -> GapEvidence:
    """Return the evidence of a gap. Without observations, only the trials show differences."""
    baseline, candidate = gap.pair
    observations = observations_of_pair(record.observations, baseline, candidate)
    evidence = decode_evidence(observations, baseline, candidate)
    conditions = (record.plan.conditions[baseline], record.plan.conditions[candidate])
    return GapEvidence(gap, evidence, difference_between(gap.trials, evidence, conditions))


def _causes(
    record: RunRecord, evidence: GapEvidence | None, experiment: RunRecord | None
) -> tuple[Explanation, ...]:
    """Return the causes that an experiment tested; without an experiment, the suggested causes."""
    kind = why_kind(record.plan.terms)
    if kind.tests_causes:
        return kind.causes(record)
    if experiment is not None and (
        evidence is None or explains_gap(experiment, record, evidence.gap.contrast)
    ):
        return why_kind(experiment.plan.terms).causes(experiment)
    return () if evidence is None else suggested_causes(evidence.difference)


def _extra_time(evidence: GapEvidence) -> ExtraTime:
    comparison, difference = evidence.gap.comparison, evidence.difference
    gap_s = difference.gap.extra
    return ExtraTime(
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        slower=getattr(comparison, difference.slower),
        gap_s=gap_s,
        gap_s_ci=difference.gap.extra_ci,
        parts=tuple(
            TimePart(
                part=cast(PartName, name.removesuffix("_s")),
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
            if runs.all_runs
        },
        # Unknown accounts are already reported with each trial.
        unseen={
            source: remarks for source, remarks in difference.unseen.items() if source != "accounts"
        },
        summary=where_the_time_goes(difference),
    )
