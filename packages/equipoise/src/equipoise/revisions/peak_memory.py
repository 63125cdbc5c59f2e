"""Decides which process's peak memory a gate compares, if it compares ``max_rss_bytes``.

The launcher reports the peak of the largest process of a trial. If a program of Equipoise reads
the results of a benchmark tool, it is a process of the trial, and hides smaller peaks. So a gate of
peak memory runs the benchmark without this program.
"""

from __future__ import annotations

from equipoise.model.errors import UnusableInput
from equipoise.revisions.plan import RevisionsRequest
from equipoise.shared.spelling import option
from equipoise.suites.tool import BenchmarkTool

PEAK_MEMORY = "max_rss_bytes"


def reader_of(request: RevisionsRequest) -> BenchmarkTool | None:
    """Return the tool that reads the results of each trial; ``None`` if the launcher measures all.

    Raise `UnusableInput` if the peak of a benchmark would not be its own.
    """
    tool, metrics = request.tool, request.metrics
    if tool is None or not isinstance(metrics, tuple) or PEAK_MEMORY not in metrics:
        return tool
    if tool.listing is None:
        raise UnusableInput(
            f"{tool.name} runs all benchmarks in one process, which has one {PEAK_MEMORY}",
            hint=f"remove {option('kind', tool.name)} to compare the whole process",
        )
    if tool.listing.iterations is None:
        return tool
    others = [metric for metric in metrics if metric != PEAK_MEMORY]
    if others:
        raise UnusableInput(
            f"{PEAK_MEMORY} of a benchmark is compared without {others[0]}: the program that reads "
            "the results needs memory, too",
            hint=f"run two gates, one with {option('metrics', PEAK_MEMORY)}",
        )
    return None
