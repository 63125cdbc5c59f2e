"""Why one condition of a campaign is slower, as far as its observations tell: a pure function.

The experiment that tests what is suggested here is a campaign of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation, ExtraTime, PartName, TimePart
from equipoise.stats.spread import KIND as SPREAD
from equipoise.why.campaigns import explains_gap
from equipoise.why.causes.ranking import causes
from equipoise.why.differences.changes import Change, Difference
from equipoise.why.differences.compare import difference_between
from equipoise.why.differences.wording import where_the_time_goes
from equipoise.why.evidence.evidence_set import (
    EvidenceSet,
    decode_evidence,
    latest_conditions,
    observations_of_pair,
)
from equipoise.why.experiment.outcome import tested
from equipoise.why.gap import Gap, gaps_of

_PARTS: dict[str, PartName] = {
    "user_s": "user",
    "system_s": "system",
    "waiting_s": "waiting",
    "queueing_s": "queueing",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A gap, and what its observations say of it."""

    gap: Gap
    evidence: EvidenceSet
    difference: Difference


def explained(record: RunRecord) -> tuple[Explanation, ...]:
    """The causes of the gap that was observed last, all open, ranked by seconds.

    Nothing without observations, or if the gap is not called.
    """
    evidence = evidence_of(record)
    return () if evidence is None else suggested(evidence)


def with_causes(
    document: ResultDocument, record: RunRecord, experiment: RunRecord | None
) -> ResultDocument:
    """Return the document with the causes of the gap that was observed last.

    Parameters
    ----------
    experiment
        The campaign that tested them, if there is one.
    """
    evidence = evidence_of(record)
    return replace(
        document,
        why=(*document.why, *causes_of_gap(record, evidence, experiment)),
        extra_time=None if evidence is None else extra_time(evidence),
    )


def explaining(
    document: ResultDocument, record: RunRecord, gap: Gap, experiment: RunRecord | None = None
) -> ResultDocument:
    """The document with what is known of this gap, of several that were observed.

    Parameters
    ----------
    experiment
        The campaign that tested what was found, if there is one; the document knows it, too.
    """
    shown = document.extra_time
    one = gap.comparison
    if shown is not None and (shown.baseline, shown.candidate) == (one.baseline, one.candidate):
        return document
    evidence = evidence_of_gap(record, gap)
    of_spread = tuple(one for one in document.why if one.kind == SPREAD)
    return replace(
        document,
        why=(*of_spread, *causes_of_gap(record, evidence, experiment)),
        extra_time=extra_time(evidence),
    )


def causes_of_gap(
    record: RunRecord, evidence: Evidence | None, experiment: RunRecord | None
) -> tuple[Explanation, ...]:
    """What is known of why: as an experiment showed it, else as evidence suggests, all open."""
    if record.plan.explains is not None:
        return tested(record)
    if experiment is not None and (
        evidence is None or explains_gap(experiment, record, evidence.gap.contrast)
    ):
        return tested(experiment)
    return () if evidence is None else suggested(evidence)


def evidence_of(record: RunRecord) -> Evidence | None:
    """What the observations of the gap that was observed last say; ``None`` without one."""
    gap = _observed_gap(record)
    return None if gap is None else evidence_of_gap(record, gap)


def evidence_of_gap(record: RunRecord, gap: Gap) -> Evidence:
    """What the observations of this gap say; without any, what the trials' own accounts say."""
    baseline, candidate = gap.contrast.baseline, gap.contrast.candidate
    observations = observations_of_pair(record.observations, baseline, candidate)
    evidence = decode_evidence(observations, baseline, candidate)
    conditions = (record.plan.conditions[baseline], record.plan.conditions[candidate])
    return Evidence(gap, evidence, difference_between(gap.trials, evidence, conditions))


def suggested(evidence: Evidence) -> tuple[Explanation, ...]:
    """The causes that evidence suggests, all open, ranked by seconds."""
    return causes(evidence.difference)


def extra_time(evidence: Evidence) -> ExtraTime:
    """Where the extra time is."""
    found = evidence.difference
    names = {
        "baseline": evidence.gap.comparison.baseline,
        "candidate": evidence.gap.comparison.candidate,
    }
    parts = tuple(
        _part(_PARTS[name], change, found.gap.extra) for name, change in found.split.items()
    )
    return ExtraTime(
        baseline=names["baseline"],
        candidate=names["candidate"],
        slower=names[found.slower],
        gap_s=found.gap.extra,
        gap_s_ci=found.gap.extra_ci,
        parts=parts,
        observed=_observed(evidence.evidence),
        # What the other accounts lack stands beside each trial.
        unseen={source: told for source, told in found.unseen.items() if source != "accounts"},
        summary=where_the_time_goes(found),
    )


def _observed_gap(record: RunRecord) -> Gap | None:
    conditions = latest_conditions(record.observations)
    if not conditions:
        return None
    fitting = [
        gap
        for gap in gaps_of(record)
        if gap.is_called and conditions <= {gap.contrast.baseline, gap.contrast.candidate}
    ]
    return fitting[0] if fitting else None


def _part(name: PartName, change: Change, gap_s: float) -> TimePart:
    return TimePart(
        part=name,
        baseline_s=change.baseline,
        candidate_s=change.candidate,
        extra_s=change.extra,
        extra_s_ci=change.extra_ci,
        share_of_gap=change.extra / gap_s if gap_s > 0 else None,
    )


def _observed(seen: EvidenceSet) -> dict[str, tuple[int, int]]:
    return {
        source: (len(runs.baseline), len(runs.candidate))
        for source, runs in seen.by_source().items()
        if runs.every
    }
