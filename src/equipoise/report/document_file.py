"""Reading a result document from a file, which may be somebody else's or damaged.

A document has the types of its schema or is refused by `json_document.decode`. This module
refuses in addition what no campaign computes, because pages and figures take its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from equipoise.files.reading import read_whole
from equipoise.model.errors import UnusableInput
from equipoise.model.interval import Interval
from equipoise.model.result import Comparison, ConditionResult, ResultDocument
from equipoise.report.json_document import decode

MOST_BYTES = 1024 * 1024 * 1024
"""A campaign of 100,000 trials writes about 100 MB."""
_HINT = "name a file that `equipoise … --json FILE` wrote"
_MOST_MIN_EFFECT = 1000.0


def read_document(path: Path) -> ResultDocument:
    """Read and check the result document in a file.

    Raises
    ------
    UnusableInput
        The file cannot be read, or holds no document that a campaign writes.
    """
    content = read_whole(path, hint=_HINT, most_bytes=MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise UnusableInput(f"{path} is larger than {MOST_BYTES >> 30} GiB", hint=_HINT)
    document = decode(content, str(path))
    for what in _impossible(document):
        raise UnusableInput(f"{path}: it is no result document: {what}", hint=_HINT)
    return document


def _impossible(document: ResultDocument) -> Iterator[str]:
    """Say what of a document no campaign computes."""
    conditions, compared = list(document.conditions), list(document.comparisons)
    if document.control is not None:
        conditions.append(document.control.condition)
        compared.append(document.control.comparison)
    compared += [one.comparison for one in document.steady_state if one.comparison is not None]
    for condition in conditions:
        yield from _impossible_condition(condition)
    for comparison in compared:
        yield from _impossible_comparison(comparison)


def _impossible_condition(condition: ConditionResult) -> Iterator[str]:
    for metric, summary in condition.metrics.items():
        if not summary.modes:
            yield f"{metric} of {condition.name} has no mode"
    if condition.trials < 0 or condition.failures < 0:
        yield f"{condition.name} has fewer than no trials"


def _impossible_comparison(one: Comparison) -> Iterator[str]:
    named = f"{one.candidate} against {one.baseline}"
    if not 0.0 <= one.min_effect <= _MOST_MIN_EFFECT:
        yield f"{named} has a smallest effect of {one.min_effect:g} percent"
    if not (0.0 < one.alpha < 1.0 and 0.0 < one.level < 1.0):
        yield f"{named} has no alpha between 0 and 1"
    ratios = [one.ratio, one.mean_ratio, *(answer.ratio for answer in one.answers)]
    if any(ratio is not None and not 0.0 <= ratio < math.inf for ratio in ratios):
        yield f"{named} has a ratio below 0"
    if one.blocks < 0:
        yield f"{named} has {one.blocks} blocks"
    for interval in (one.ratio_ci, one.mean_ratio_ci):
        if not _is_interval_of_ratios(interval):
            yield f"{named} has an interval {interval[0]} to {interval[1]}"


def _is_interval_of_ratios(interval: Interval) -> bool:
    low, high = interval
    return (
        (low is None or 0.0 <= low < math.inf)
        and (high is None or 0.0 < high < math.inf)
        and (low is None or high is None or low <= high)
    )
