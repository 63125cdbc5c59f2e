"""The class of every runtime on every kernel, and the series of its iterations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.stats.arrays import FloatArray
from equipoise.stats.warm_up import LEAST_ITERATIONS, classify_workload
from equipoise.studies.measured import UNKNOWN, quantity, short

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

METRIC = "iteration_s"


def findings(document: ResultDocument) -> Findings:
    """One row for each runtime on each kernel."""
    table = FindingTable(
        "Warm-up, by runtime and kernel",
        (
            "runtime",
            "kernel",
            "class",
            "steady from",
            "first",
            "steady",
            "times",
            "trials",
        ),
        tuple(row for one in document.conditions if (row := _row(document, one)) is not None),
        (
            "Classes of Barrett et al. (2017) over the iterations of each trial; first: the median "
            "first iteration; steady: the mean over trials, where each has a steady state; times: "
            "the first over it.",
        ),
    )
    return Findings((table,) if table.rows else (), tuple(_paragraphs(table)))


def figures(document: ResultDocument) -> Iterator[Figure]:
    """One chart of the iterations of each condition."""
    from equipoise.figures.gallery import Figure
    from equipoise.studies.warmup import charts

    for one in document.conditions:
        trials = series(document, one)
        if trials:
            name = "_".join(one.levels[factor] for factor in ("runtime", "kernel"))
            yield Figure(f"iterations_{name}", charts.HOW_TO_READ, charts.iterations(name, trials))


def series(document: ResultDocument, condition: ConditionResult) -> list[FloatArray]:
    """The iterations of each analysed trial of a condition, in seconds; each of shape (n,)."""
    return [
        np.array(row.iterations[METRIC], dtype=np.float64)
        for row in document.trials
        if row.analysed
        and row.condition == condition.name
        and len(row.iterations.get(METRIC, ())) >= LEAST_ITERATIONS
    ]


def _row(document: ResultDocument, condition: ConditionResult) -> tuple[str, ...] | None:
    trials = series(document, condition)
    shape = classify_workload(trials)
    if shape is None:
        return None
    first = float(np.median([one[0] for one in trials]))
    begins = [one.steady_from for one in shape.trials if one.steady_from is not None]
    steady = None if shape.steady is None else float(np.mean(shape.steady))
    return (
        condition.levels["runtime"],
        condition.levels["kernel"],
        shape.kind,
        f"{int(np.median(begins)) + 1}" if begins else UNKNOWN,
        quantity(METRIC, first),
        quantity(METRIC, steady),
        UNKNOWN if steady is None else short(first / steady),
        shape.words,
    )


def _paragraphs(table: FindingTable) -> Iterator[str]:
    by_class: dict[str, list[str]] = {}
    for runtime, kernel, kind, *_ in table.rows:
        by_class.setdefault(kind, []).append(f"{runtime} on {kernel}")
    for kind, names in by_class.items():
        yield f"{kind}: {', '.join(names)}."
