"""The class of every runtime on every kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.studies.study_data import UNKNOWN, quantity, short

METRIC = "iteration_s"


def findings(document: ResultDocument) -> Findings:
    """Return one row for each runtime on each kernel."""
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
            "first iteration; steady: the mean over trials, where all but a fifth at most have a "
            "steady state; times: the first over it.",
        ),
    )
    return Findings((table,) if table.rows else (), tuple(_paragraphs(table)), _answer(table))


def _row(document: ResultDocument, condition: ConditionResult) -> tuple[str, ...] | None:
    shape = condition.iterations.get(METRIC)
    if shape is None or shape.kind is None:
        return None
    firsts = [
        row.iterations[METRIC][0]
        for row in document.trials
        if row.analysed and row.condition == condition.name and row.iterations.get(METRIC)
    ]
    first = float(np.median(firsts))
    begins = [one.steady_from for one in shape.trials if one.steady_from is not None]
    known = [one.steady for one in shape.trials if one.steady is not None]
    steady = float(np.mean(known)) if shape.has_steady_state else None
    return (
        condition.levels["runtime"],
        condition.levels["kernel"],
        shape.kind,
        f"{int(np.median(begins)) + 1}" if begins else UNKNOWN,
        quantity(METRIC, first),
        quantity(METRIC, steady),
        UNKNOWN if steady is None else short(first / steady),
        shape.summary,
    )


def _answer(table: FindingTable) -> str:
    if not table.rows:
        return ""
    counts = Counter(kind for _, _, kind, *_ in table.rows)
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    return f"{len(table.rows)} pairs of runtime and kernel: {listed}."


def _paragraphs(table: FindingTable) -> Iterator[str]:
    by_class: dict[str, list[str]] = {}
    for runtime, kernel, kind, *_ in table.rows:
        by_class.setdefault(kind, []).append(f"{runtime} on {kernel}")
    for kind, names in by_class.items():
        yield f"{kind}: {', '.join(names)}."
