"""Computes sequences: the interval of each candidate after every block of a campaign."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from equipoise.campaign.interim import interim_for
from equipoise.campaign.washouts import analysed_blocks
from equipoise.model.plan import Condition, Contrast, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Better, Draw, RunRecord, Sample, Trial
from equipoise.model.result import Comparison, ResultDocument, TrialRow
from equipoise.stats.sequence import SequencePoint

MAX_POINTS = 400
"""Maximum number of points in a sequence."""
TOLERANCE = 1e-9
"""Relative tolerance between two computations of an interval on different machines."""

Sequences = dict[str, tuple[SequencePoint, ...]]
"""Points in the order of blocks, by candidate."""


def sequences_of(record: RunRecord) -> Sequences:
    """Return the interval of each candidate after every block.

    With more than `MAX_POINTS` blocks, the points are evenly spaced and include the last block. The
    result is empty for an imported run, whose order is not random, and for a fleet.
    """
    if not record.plan.rules.has_random_order or record.plan.rules.has_members:
        return {}
    # A ranking is not needed, and takes time.
    plan = replace(record.plan, ranking=False)
    interim = interim_for(plan, plan.stopping)
    blocks = list(analysed_blocks(record).values())
    blocks_per_point = -(-len(blocks) // MAX_POINTS) or 1
    points: dict[str, list[SequencePoint]] = defaultdict(list)
    for number, block in enumerate(blocks, start=1):
        interim.add(block)
        for status in interim.analyse() if (len(blocks) - number) % blocks_per_point == 0 else ():
            point = SequencePoint(number, status.ratio, *status.ratio_ci)
            points[status.candidate].append(point)
    return {candidate: tuple(candidate_points) for candidate, candidate_points in points.items()}


def sequences_of_document(document: ResultDocument) -> Sequences:
    """Return the interval of each candidate after every block, from the trials in a document.

    The result is empty if these trials do not reproduce the intervals of the document.
    """
    if not document.has_one_order:
        return {}
    metric = document.comparisons[0].metric if document.comparisons else None
    comparisons = [comparison for comparison in document.comparisons if comparison.metric == metric]
    record = _record_of(document, comparisons) if comparisons else None
    sequences = {} if record is None else sequences_of(record)
    is_reproduced = all(
        _ends_at(sequences.get(comparison.candidate, ()), comparison) for comparison in comparisons
    )
    return sequences if is_reproduced else {}


def _ends_at(points: Sequence[SequencePoint], comparison: Comparison) -> bool:
    """Return whether the last point has the ratio and the interval of a comparison."""
    if not points:
        return False
    values = (points[-1].ratio, points[-1].low, points[-1].high)
    return all(
        value == expected
        if value is None or expected is None
        else math.isclose(value, expected, rel_tol=TOLERANCE)
        for value, expected in zip(values, (comparison.ratio, *comparison.ratio_ci), strict=True)
    )


def _record_of(document: ResultDocument, comparisons: Sequence[Comparison]) -> RunRecord | None:
    """Return a record for an interim analysis, with the analysed trials of a document.

    ``None`` if a trial lacks the metric, or a name of a condition is unknown.
    """
    results = [*document.conditions, *([document.control.condition] if document.control else [])]
    indices = {result.name: index for index, result in enumerate(results)}
    compared_names = {
        name for comparison in comparisons for name in (comparison.baseline, comparison.candidate)
    }
    if not compared_names | {row.condition for row in document.trials} <= indices.keys():
        return None
    metric = comparisons[0].metric
    better: Better = "higher" if metric in document.more_is_better else "lower"
    resolution = document.resolutions.get(metric)
    blocks: dict[int, list[Trial]] = defaultdict(list)
    for row in document.trials:
        if row.phase != "measured" or not row.analysed:
            continue
        trial = _trial(row, indices[row.condition], metric, better, resolution)
        if trial is None:
            return None
        blocks[row.block].append(trial)
    plan = Plan(
        study=document.run.study,
        conditions=tuple(
            Condition(result.name, result.command, result.levels) for result in results
        ),
        measure=Measure(working_folder="/"),
        stopping=Stopping(),
        judgement=Judgement(comparisons[0].alpha, comparisons[0].min_effect, comparisons[0].metric),
        seed=document.run.seed,
        layouts=document.run.layouts,
        control=len(results) - 1 if document.control else None,
        chosen_contrasts=tuple(
            Contrast(indices[comparison.baseline], indices[comparison.candidate])
            for comparison in comparisons
        ),
    )
    return RunRecord(
        id=document.run.id,
        plan=plan,
        started_at=0.0,
        segments=(),
        draws=tuple(
            Draw("measured", block, tuple(trial.condition for trial in trials), padding_bytes=0)
            for block, trials in blocks.items()
        ),
        trials=tuple(trial for trials in blocks.values() for trial in trials),
        notices=(),
    )


def _trial(
    row: TrialRow, condition: int, metric: str, better: Better, resolution: float | None
) -> Trial | None:
    """Return a trial with the row's value of the metric; ``None`` if the value is unknown."""
    samples: tuple[Sample, ...] = ()
    if not row.timed_out:
        value = row.value_of(metric)
        if value is None:
            return None
        samples = (Sample(metric, value, better=better, resolution=resolution),)
    return Trial(
        phase=row.phase,
        block=row.block,
        position=row.position,
        condition=condition,
        started_at=0.0,
        accounting=Accounting(),
        failure=row.failure,
        failure_kind=row.failure_kind,
        samples=samples,
    )
