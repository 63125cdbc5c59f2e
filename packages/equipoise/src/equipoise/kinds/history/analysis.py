"""Compute the result of a history, and find suspicions in series of other tools.

A suspicion is a possible change of values that were not measured side by side. It has a shell line
that measures the change.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.kind import KindResult
from equipoise.analysis.reference import environment_differences
from equipoise.analysis.wording import change_clause
from equipoise.campaign.blocks import complete_blocks, resolution_of, seconds_of_segments
from equipoise.kinds.history.judge import campaigns_of_series, read_history
from equipoise.kinds.history.statistics import Change, HistoryState, RevisionPoint
from equipoise.kinds.history.terms import (
    HistoryCampaign,
    HistoryChange,
    HistoryEra,
    HistoryPlan,
    HistoryResult,
    HistoryRevision,
    RevisionStatus,
    history_terms,
)
from equipoise.model.metrics import is_time
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.quantities import (
    MAX_NAMES,
    as_factor,
    counted,
    iso_time,
    joined,
    listed,
    reads_as_factor,
)
from equipoise.model.record import RunRecord
from equipoise.model.revisions import BENCHMARK_SUFFIX, Commit, short_name
from equipoise.model.series import ImportedSeries, SeriesResult, Suspicion, shown_commit
from equipoise.revisions.commits import commit_phrase
from equipoise.revisions.judging import CommitsAnalysis, withdrawals_of
from equipoise.revisions.plan import bisect_line
from equipoise.stats.changes import MIN_VALUES, LevelChange, level_changes

_MAX_DIFFERENCES = 6
"""Maximum number of differences between environments in the text of an era."""
_UNRECORDED_DIFFERENCE = "the tools that build the commits"
"""Text for two eras without a recorded difference."""


class HistoryAnalysis(CommitsAnalysis):
    """Analysis of a history."""

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the result of the history after this campaign."""
        return KindResult({"history": history_result(record, history_terms(record.plan))})


def history_result(record: RunRecord, terms: HistoryPlan) -> HistoryResult:
    """Return the result of a history after a campaign and the earlier campaigns in its record.

    Raise `UnusableInput` if a trial has no value for the metric.
    """
    plan = record.plan
    records = campaigns_of_series(record)
    state = read_history(records).state()
    metric = plan.judgement.primary_metric
    blocks = [complete_blocks(campaign.draws, campaign.trials) for campaign in records]
    more_is_better = any(
        resolution_of(campaign_blocks, metric).more_is_better for campaign_blocks in blocks
    )
    era_numbers = _era_numbers(records)
    campaigns = tuple(
        _history_campaign(campaign, [*campaign_blocks.values()], era)
        for campaign, campaign_blocks, era in zip(records, blocks, era_numbers, strict=True)
    )
    changes = tuple(
        _history_change(records, change, metric, more_is_better=more_is_better)
        for change in state.changes
    )
    result = HistoryResult(
        baseline=terms.baseline,
        latest=terms.latest,
        revisions=tuple(_curve_revisions(terms, state)),
        changes=changes,
        pairs=state.pairs,
        eras=tuple(_eras(records, era_numbers)),
        campaigns=campaigns,
        commit_count=len(terms.commits) - 1,
        metric=metric,
        min_effect=plan.judgement.min_effect,
        alpha=plan.judgement.alpha,
        trials=sum(campaign.trials for campaign in campaigns),
        tried_commits=sum(campaign.tried_commits for campaign in campaigns),
        seconds=sum(campaign.seconds for campaign in campaigns),
        blocks_to_go=state.blocks_to_go,
        build=terms.build,
        summary="",
    )
    return replace(result, summary=history_sentence(result, more_is_better=more_is_better))


def _curve_revisions(terms: HistoryPlan, state: HistoryState) -> Iterator[HistoryRevision]:
    """Yield, in order, the commits of the curve, and other commits that ran or do not build."""
    points = {point.hash: point for point in state.revisions}
    for index, commit in enumerate(terms.commits):
        point = points.get(commit.hash, RevisionPoint(commit.hash))
        status: RevisionStatus = "measured" if commit.hash in points else "waiting"
        if commit.hash in state.withdrawn:
            status = "not built"
        elif status == "waiting" and index not in terms.selected:
            continue
        yield HistoryRevision(
            commit=commit.hash,
            subject=commit.subject,
            author=commit.author,
            date=commit.date,
            place=index,
            status=status,
            ratio=point.ratio,
            ratio_ci=point.ratio_ci,
            significance_level=point.significance_level,
            blocks=point.blocks,
            era=point.era,
        )


def _history_change(
    records: Sequence[RunRecord], change: Change, metric: str, *, more_is_better: bool
) -> HistoryChange:
    pair = change.pair
    record, commits = _latest_campaign_with(records, pair.earlier_hash, pair.later_hash)
    later_commit = commits[-1]
    is_confirmed = change.is_confirmed
    result = HistoryChange(
        commit=later_commit.hash if is_confirmed else None,
        earlier_hash=pair.earlier_hash,
        later_hash=pair.later_hash,
        subject=later_commit.subject,
        author=later_commit.author,
        date=later_commit.date,
        commit_count=len(commits),
        not_built=change.not_built,
        is_merge=later_commit.is_merge,
        ratio=pair.ratio,
        ratio_ci=pair.ratio_ci,
        significance_level=pair.significance_level,
        e_value=pair.e_value,
        threshold=change.threshold,
        pair_number=pair.pair_number,
        confirmed=is_confirmed,
        blocks=pair.blocks,
        summary="",
        confirm=None
        if is_confirmed
        else _confirming_line(record, pair.earlier_hash, pair.later_hash),
    )
    return replace(result, summary=change_sentence(result, metric, more_is_better=more_is_better))


def _latest_campaign_with(
    records: Sequence[RunRecord], earlier_hash: str, later_hash: str
) -> tuple[RunRecord, tuple[Commit, ...]]:
    """Return the latest campaign with both commits, and the commits after the earlier commit."""
    for record in reversed(records):
        commits = history_terms(record.plan).commits
        hashes = [commit.hash for commit in commits]
        if earlier_hash in hashes and later_hash in hashes:
            return record, commits[hashes.index(earlier_hash) + 1 : hashes.index(later_hash) + 1]
    raise AssertionError("each pair of a series ran in one of its campaigns")


def _confirming_line(record: RunRecord, earlier_hash: str, later_hash: str) -> str | None:
    terms = history_terms(record.plan)
    argv = record.plan.command_line
    metric = record.plan.judgement.primary_metric
    return bisect_line(
        earlier_hash,
        later_hash,
        argv[argv.index("--") + 1 :] if "--" in argv else (),
        # A tool has a default build line.
        build=terms.build if terms.tool is None else None,
        kind=terms.tool,
        metric=metric if terms.tool is None else metric.removesuffix(BENCHMARK_SUFFIX),
    )


def _history_campaign(
    record: RunRecord, blocks: Sequence[tuple[object, ...]], era: int
) -> HistoryCampaign:
    conditions = {trial.condition for trial in record.trials}
    ended_at = record.segments[-1].ended_at if record.segments else None
    return HistoryCampaign(
        run=record.id,
        started=iso_time(record.started_at),
        ended=None if ended_at is None else iso_time(ended_at),
        stopped_because=record.stopped_because,
        era=era,
        blocks=len(blocks),
        trials=sum(map(len, blocks)),
        tried_commits=len(
            conditions | {withdrawal.commit for withdrawal in withdrawals_of(record)}
        ),
        seconds=seconds_of_segments(record),
        latest_hash=history_terms(record.plan).commits[-1].hash,
    )


def _era_numbers(records: Sequence[RunRecord]) -> list[int]:
    """Return the number of the era of each campaign, from 1."""
    numbers: dict[str, int] = {}
    """Number of each era, by the digest of the era."""
    return [
        numbers.setdefault(history_terms(record.plan).era, len(numbers) + 1) for record in records
    ]


def _eras(records: Sequence[RunRecord], era_numbers: Sequence[int]) -> Iterator[HistoryEra]:
    latest_era = 0
    for previous, record, era in zip((None, *records), records, era_numbers, strict=False):
        if era > latest_era:
            latest_era = era
            differences = () if previous is None else tuple(_difference_texts(previous, record))
            yield HistoryEra(era, iso_time(record.started_at), differences)


def _difference_texts(previous_record: RunRecord, record: RunRecord) -> Iterator[str]:
    """Yield the recorded differences between the environments of two campaigns."""
    differences = environment_differences(previous_record.environment, record.environment)
    for difference in itertools.islice(differences, _MAX_DIFFERENCES):
        old_text = "unknown" if difference.reference_value is None else difference.reference_value
        new_text = "unknown" if difference.value is None else difference.value
        yield f"{difference.name.replace('_', ' ')}: {new_text} instead of {old_text}"
    if len(differences) > _MAX_DIFFERENCES:
        yield f"{len(differences) - _MAX_DIFFERENCES} more facts"
    if not differences:
        yield _UNRECORDED_DIFFERENCE


def change_sentence(change: HistoryChange, metric: str, *, more_is_better: bool = False) -> str:
    """Return the sentence about a change: ``1a2b3c4d5e (Sort) made it 3.10 % slower …``."""
    earlier_commit, later_commit = short_name(change.earlier_hash), short_name(change.later_hash)
    if change.confirmed:
        cause = commit_phrase(change.later_hash, change.subject, change.not_built)
        reference = "its parent"
    else:
        cause = f"The {change.commit_count} commits after {earlier_commit}, up to {later_commit},"
        reference = earlier_commit
    if change.ratio is None:
        return f"{cause} made a difference whose size is not known."
    clause = change_clause(
        metric, change.ratio, change.ratio_ci, other=reference, more_is_better=more_is_better
    )
    return f"{cause} made {clause}."


def history_sentence(result: HistoryResult, *, more_is_better: bool = False) -> str:
    """Return the answer of a history: the only change, or the number of changes."""
    changes = result.changes
    since = f"{counted(result.commit_count, 'commit')} since {result.baseline.label}"
    if len(changes) == 1:
        return f"One change in {since}: {changes[0].summary}"
    if not changes:
        measured_count = sum(revision.blocks > 0 for revision in result.revisions[1:])
        return (
            f"No change above {result.min_effect:g} % is certain in {since}; "
            f"{counted(measured_count, 'commit')} measured."
        )
    up, down = ("slower", "faster") if is_time(result.metric) else ("higher", "lower")
    # Ratios are of costs. If more of the metric is better, cost is the inverse of the metric.
    is_inverted = more_is_better and not is_time(result.metric)
    directions = Counter(
        down if ((change.ratio or 1.0) < 1.0) is not is_inverted else up for change in changes
    )
    counts = joined(f"{count} {direction}" for direction, count in directions.most_common())
    return f"{len(changes)} changes in {since}: {counts}."


COMMAND_PLACEHOLDER = "COMMAND"
"""Stands for the command in a shell line if the user gave no command."""
_BISECT_METRICS = {"peakmemory": "max_rss_bytes"}
"""Value of ``bisect --metrics`` for metrics of other tools, except times."""


def series_result(
    series: Iterable[ImportedSeries],
    *,
    min_effect: float,
    command_line: str,
    command: Sequence[str] = (),
    build: str | None = None,
) -> SeriesResult:
    """Find the suspicions in imported series; series with suspicions come first in the result.

    A suspicion is a change of the level, the typical value, by at least ``min_effect`` percent.
    ``command_line`` is the shell line that imports the series again. The shell lines that measure
    a suspicion contain ``command`` and ``build``.
    """
    analysed = [_with_suspicions(imported, min_effect, command, build) for imported in series]
    analysed.sort(key=lambda imported: not imported.suspicions)
    return SeriesResult(
        series=tuple(analysed),
        min_effect=min_effect,
        summary=_summary_of_all(analysed),
        command_line=command_line,
    )


def _with_suspicions(
    series: ImportedSeries, min_effect: float, command: Sequence[str], build: str | None
) -> ImportedSeries:
    changes = level_changes(np.array([point.value for point in series.points]), min_effect)
    suspicions = tuple(_suspicion_of_change(series, change, command, build) for change in changes)
    return replace(series, suspicions=suspicions, summary=_summary_of_series(series, suspicions))


def _suspicion_of_change(
    series: ImportedSeries, change: LevelChange, command: Sequence[str], build: str | None
) -> Suspicion:
    after, until = series.points[change.first].commit, series.points[change.last].commit
    likely_commit = shown_commit(series.points[change.place].commit)
    ratio = change.ratio
    size_text = as_factor(ratio) if reads_as_factor(ratio) else f"{100.0 * (ratio - 1.0):+.1f} %"
    interval = f"between {shown_commit(after)} and {shown_commit(until)}"
    return Suspicion(
        last_old_commit=after,
        first_new_commit=until,
        last_old_index=change.first,
        change_index=change.place,
        first_new_index=change.last,
        old_level=change.before,
        ratio=ratio,
        confirm_command=bisect_line(
            after,
            until,
            command or (COMMAND_PLACEHOLDER,),
            build=build,
            metric=_BISECT_METRICS.get(series.metric, PRIMARY_METRIC),
        ),
        summary=f"{series.benchmark}: {size_text} at about {likely_commit}, {interval}.",
    )


def _summary_of_series(series: ImportedSeries, suspicions: Sequence[Suspicion]) -> str:
    count = len(series.points)
    if count < MIN_VALUES:
        return (
            f"{series.benchmark}: {counted(count, 'commit')}, fewer than the {MIN_VALUES} that a "
            "change of level needs."
        )
    count_clause = counted(len(suspicions), "suspicion") if suspicions else "no suspicion"
    return f"{series.benchmark}: {count_clause} over {count} commits."


def _summary_of_all(series: Sequence[ImportedSeries]) -> str:
    benchmarks = [imported.benchmark for imported in series for _ in imported.suspicions]
    series_clause = counted(len(series), "imported benchmark")
    if not benchmarks:
        return f"No suspicion in {series_clause}: no level changed clearly."
    names = listed(list(dict.fromkeys(benchmarks)), MAX_NAMES)
    suspicions = counted(len(benchmarks), "suspicion")
    return f"{suspicions} in {series_clause} ({names}): the program or the machine changed."
