"""The command line that searches commits: `equipoise bisect`, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.design.command_line import shell_line_with_placeholders
from equipoise.model.kinds import place_of
from equipoise.model.plan import PRIMARY_METRIC

SEARCH = "bisect"
"""Kind of campaign, and command, that finds the commit that made a difference."""


def bisect_words(
    good: str,
    bad: str | None,
    command: Sequence[str],
    *,
    build: str | None = None,
    kind: str | None = None,
    metric: str = PRIMARY_METRIC,
) -> tuple[str, ...] | None:
    """Return the words of the line that finds which commit between two made a difference.

    ``None`` where no search of commits is installed.

    ``bad`` is by default the working tree; ``kind`` is the tool that reads the results of
    benchmarks, of which ``metric`` is one then.
    """
    if place_of(SEARCH) is None:
        return None
    options = {"--bad": bad, "--build": build, "--kind": kind}
    if metric != PRIMARY_METRIC:
        options["--metrics"] = metric
    words = [word for name, value in options.items() if value is not None for word in (name, value)]
    return ("equipoise", SEARCH, "--good", good, *words, "--", *command)


def bisect_line(good: str, bad: str | None, command: Sequence[str], **options: Any) -> str | None:
    """Return `bisect_words` as a line for a shell."""
    words = bisect_words(good, bad, command, **options)
    return None if words is None else shell_line_with_placeholders(words)
