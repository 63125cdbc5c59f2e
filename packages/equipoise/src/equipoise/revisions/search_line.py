"""The command line that searches commits: `equipoise bisect`, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.design.command_line import shell_line
from equipoise.model.kinds import place_of
from equipoise.model.plan import PRIMARY_METRIC

SEARCH = "bisect"
"""Kind of campaign, and command, that finds the commit that made a difference."""


def bisect_line(
    good: str,
    bad: str | None,
    command: Sequence[str],
    *,
    build: str | None = None,
    kind: str | None = None,
    metric: str = PRIMARY_METRIC,
) -> str | None:
    """Return the line that finds which commit between two made a difference.

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
    return shell_line(["equipoise", SEARCH, "--good", good, *words, "--", *command])
