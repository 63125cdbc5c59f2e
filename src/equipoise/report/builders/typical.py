"""One condition that is compared with nothing: how it is distributed, and how to compare it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from equipoise.design.command_line import after_options, shell_line_with_placeholders
from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.report.builders.shape import modes_sentence
from equipoise.report.document import Command, Part
from equipoise.report.units import byte_count, duration, metric_formatter

OTHER = "OTHER COMMAND"
"""Stands for the command to compare with."""


def typical_lines(document: ResultDocument) -> Iterator[str]:
    """Yield lines on the distribution of the one condition, below its typical value."""
    value, condition = document.typical, document.conditions[0]
    summary = None if value is None else condition.metrics.get(value.metric)
    if value is None or summary is None:
        return
    show = metric_formatter(value.metric)
    spread = "" if summary.sd is None else f" ± {show(summary.sd)} (standard deviation)"
    yield (
        f"mean {show(summary.mean)}{spread}; from {show(summary.min)} to {show(summary.max)}, "
        f"the middle 90 % from {show(summary.p05)} to {show(summary.p95)}"
    )
    yield "; ".join(_resources(condition))
    if failures := condition.failures:
        yield f"{failures} {'run' if failures == 1 else 'runs'} failed, warm-up included"
    if len(summary.modes) == 1:
        yield f"1 mode: {show(summary.modes[0].at)}"
    elif modes := modes_sentence(value.metric, summary):
        yield modes


def how_to_compare(document: ResultDocument) -> Iterator[Part]:
    """Build the line that compares the one condition with another command."""
    if document.typical is None or document.run.study != COMPARE_STUDY:
        return
    command = _as_typed(document.conditions[0])
    words = ["equipoise", "compare", *after_options([command, OTHER])]
    purpose = "Nothing was compared. To compare it with another command:"
    yield Command(shell_line_with_placeholders(words), purpose)


def _resources(condition: ConditionResult) -> Iterator[str]:
    """Yield the medians of CPU time and memory."""
    metrics = condition.metrics
    for name, what in (("user_s", "user CPU time"), ("sys_s", "system CPU time")):
        yield f"{what} {duration(metrics[name].median) if name in metrics else 'unknown'}"
    memory = metrics.get("max_rss_bytes")
    yield f"peak memory {'unknown' if memory is None else byte_count(memory.median)}"


def _as_typed(condition: ConditionResult) -> str:
    """Return the command, as the user typed it where that is its name."""
    command = list(condition.command)
    try:
        words = shlex.split(condition.name)
    except ValueError:
        words = []
    return condition.name if words[1:] == command[1:] and words else shlex.join(command)
