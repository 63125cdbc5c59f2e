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
from equipoise.why.differences.wording import extra_time_clauses
from equipoise.why.evidence.sources import (
    EvidenceSet,
    decode_evidence,
    latest_conditions,
    observations_of_pair,
)
from equipoise.why.gap import Gap, explains_gap, gaps_of
from equipoise.why.kind import why_kind


class GapEvidence(Struct, frozen=True):
    """A gap, the observations of its conditions, and the differences between the conditions."""

    gap: Gap
    evidence: EvidenceSet
    difference: Difference


def with_causes(
    document: ResultDocument,
    record: RunRecord,
    experiment: RunRecord | None,
    gap: Gap | None = None,
) -> ResultDocument:
    """Return the document with the causes of a gap; by default, of the gap observed last."""
    if gap is None:
        gap_evidence = latest_evidence(record)
    else:
        names = (gap.comparison.baseline, gap.comparison.candidate)
        explained = document.extra_time
        # The document already explains this gap.
        if explained is not None and (explained.baseline, explained.candidate) == names:
            return document
        gap_evidence = evidence_of_gap(record, gap)
        # Keep the causes of the spread of one condition: they belong to no gap.
        spread_causes = tuple(cause for cause in document.why if cause.kind == CHANCE_KIND)
        document = replace(document, why=spread_causes)
    extra_time = None if gap_evidence is None else _extra_time(gap_evidence)
    causes = _causes(record, gap_evidence, experiment)
    if gap_evidence is not None:
        contrast = gap_evidence.gap.contrast
        if experiment is not None and not explains_gap(experiment, record, contrast):
            experiment = None
        kind = why_kind(record.plan.terms)
        document = kind.with_explanation(document, record, gap_evidence, causes, experiment)
    return replace(document, why=(*document.why, *causes), extra_time=extra_time)


def latest_evidence(record: RunRecord) -> GapEvidence | None:
    """Return the evidence of the gap that was observed last; ``None`` without observations."""
    conditions = latest_conditions(record.observations)
    for gap in gaps_of(record) if conditions else ():
        if gap.is_explainable and conditions <= {*gap.contrast.pair}:
            return evidence_of_gap(record, gap)
    return None


def evidence_of_gap(record: RunRecord, gap: Gap) -> GapEvidence:
    """Return the evidence of a gap. Without observations, only the trials show differences."""
    baseline, candidate = gap.contrast.pair
    observations = observations_of_pair(record.observations, baseline, candidate)
    evidence = decode_evidence(observations, baseline, candidate)
    conditions = (record.plan.conditions[baseline], record.plan.conditions[candidate])
    return GapEvidence(gap, evidence, difference_between(gap.trials, evidence, conditions))


def _causes(
    record: RunRecord, gap_evidence: GapEvidence | None, experiment: RunRecord | None
) -> tuple[Explanation, ...]:
    """Return the causes that an experiment tested; without an experiment, the suggested causes."""
    kind = why_kind(record.plan.terms)
    if kind.is_experiment:
        return kind.tested_causes(record)
    if experiment is not None and (
        gap_evidence is None or explains_gap(experiment, record, gap_evidence.gap.contrast)
    ):
        return why_kind(experiment.plan.terms).tested_causes(experiment)
    return () if gap_evidence is None else suggested_causes(gap_evidence.difference)


def _extra_time(gap_evidence: GapEvidence) -> ExtraTime:
    comparison, difference = gap_evidence.gap.comparison, gap_evidence.difference
    gap_s, is_baseline_slower = difference.wall_time.extra, difference.slower == "baseline"
    return ExtraTime(
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        slower=comparison.baseline if is_baseline_slower else comparison.candidate,
        gap_s=gap_s,
        gap_s_ci=difference.wall_time.extra_ci,
        parts=tuple(
            TimePart(
                part=cast(PartName, name.removesuffix("_s")),
                baseline_s=change.baseline,
                candidate_s=change.candidate,
                extra_s=change.extra,
                extra_s_ci=change.extra_ci,
                share_of_gap=change.extra / gap_s if gap_s > 0 else None,
            )
            for name, change in difference.time_parts.items()
        ),
        run_counts={
            source: (len(runs.baseline), len(runs.candidate))
            for source, runs in gap_evidence.evidence.by_source().items()
            if runs.all_runs
        },
        # Remarks about resources are already in the report of the trials.
        unseen={name: difference.unseen[name] for name in difference.unseen if name != "resources"},
        summary=extra_time_clauses(difference),
    )
