"""Sentences of a history: what changed between two commits, and the answer of the whole series."""

from __future__ import annotations

from collections import Counter

from equipoise.analysis.bisection_wording import commit_phrase
from equipoise.analysis.wording import change_clause
from equipoise.model.history import HistoryChange, HistoryResult
from equipoise.model.metrics import is_time
from equipoise.model.plan import short_name
from equipoise.model.quantities import counted, joined


def change_sentence(change: HistoryChange, metric: str, *, more_is_better: bool = False) -> str:
    """Return what changed: ``1a2b3c4d5e (Sort) made it 3.10 % slower (2.40 % to 3.80 %)``.

    Parameters
    ----------
    change
        A change with its numbers; its own summary is not read.
    more_is_better
        Whether the cost is the inverse of the metric.
    """
    after, until = short_name(change.after), short_name(change.until)
    if change.confirmed:
        what, other = commit_phrase(change.until, change.subject, change.not_built), "its parent"
    else:
        what, other = f"The {change.commits} commits after {after}, up to {until},", after
    if change.ratio is None:
        return f"{what} made a difference whose size is not known."
    made = change_clause(
        metric, change.ratio, change.ratio_ci, other=other, more_is_better=more_is_better
    )
    return f"{what} made {made}."


def history_sentence(result: HistoryResult, *, more_is_better: bool = False) -> str:
    """Return the answer of a series: how many changes there are, or the one that there is.

    Parameters
    ----------
    result
        A result with its numbers and the sentences of its changes; its own summary is not read.
    """
    changes = result.changes
    since = f"{counted(result.commits, 'commit')} since {result.baseline.label}"
    if len(changes) == 1:
        return f"One change in {since}: {changes[0].summary}"
    if not changes:
        measured = sum(one.blocks > 0 for one in result.revisions[1:])
        return (
            f"No change above {result.min_effect:g} % is certain in {since}; "
            f"{counted(measured, 'commit')} measured."
        )
    words = ("slower", "faster") if is_time(result.metric) else ("higher", "lower")
    # A ratio is that of a cost, the inverse of a metric of which more is better.
    counts = Counter(
        words[((one.ratio or 1.0) < 1.0) is not (more_is_better and not is_time(result.metric))]
        for one in changes
    )
    kinds = joined(f"{count} {word}" for word, count in counts.most_common())
    return f"{len(changes)} changes in {since}: {kinds}."
