"""Classify the warm-up of every runtime on every kernel.

A kernel is a small program, such as ``nbody``. Equipoise classifies how the times of successive
iterations change: ``flat``, ``warm-up``, ``slowdown`` and others. In the result, the class is the
``kind`` of a condition's iterations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import UNKNOWN, StudyData, findings_of, number_text, quantity_text

METRIC = "iteration_s"
"""Seconds of an iteration."""


def findings(data: StudyData) -> Findings:
    """Return a table with a row for each runtime and kernel, and the number of rows by class."""
    table = FindingTable(
        "Warm-up, by runtime and kernel",
        ("runtime", "kernel", "class", "steady from", "first", "steady", "times", "trials"),
        tuple(_rows(data)),
        (
            "Classes of Barrett et al. (2017) over the iterations of each trial; first: the median "
            "first iteration; steady: the mean over trials, if at least four fifths have a steady "
            "state; times: the first over the steady time.",
        ),
    )
    pairs_by_class: dict[str, list[str]] = {}
    for runtime, kernel, class_name, *_ in table.rows:
        pairs_by_class.setdefault(class_name, []).append(f"{runtime} on {kernel}")
    counts = Counter({class_name: len(pairs) for class_name, pairs in pairs_by_class.items()})
    counts_text = ", ".join(f"{count} {class_name}" for class_name, count in counts.most_common())
    answer = f"{len(table.rows)} pairs of runtime and kernel: {counts_text}." if counts_text else ""
    return findings_of(
        (table,),
        (f"{class_name}: {', '.join(pairs)}." for class_name, pairs in pairs_by_class.items()),
        answer,
    )


def _rows(data: StudyData) -> Iterator[tuple[str, ...]]:
    for condition in data.document.conditions:
        iterations = condition.iterations.get(METRIC)
        if iterations is None or iterations.kind is None:
            continue
        first_times = [
            row.iterations[METRIC][0]
            for row in data.document.trials
            if row.analysed and row.condition == condition.name and row.iterations.get(METRIC)
        ]
        first_time = float(np.median(first_times))
        steady_starts = [
            trial.steady_from for trial in iterations.trials if trial.steady_from is not None
        ]
        steady_times = [
            trial.steady_mean for trial in iterations.trials if trial.steady_mean is not None
        ]
        steady_time = float(np.mean(steady_times)) if iterations.has_steady_state else None
        yield (
            condition.levels["runtime"],
            condition.levels["kernel"],
            iterations.kind,
            f"{int(np.median(steady_starts)) + 1}" if steady_starts else UNKNOWN,
            quantity_text(METRIC, first_time),
            quantity_text(METRIC, steady_time),
            UNKNOWN if steady_time is None else number_text(first_time / steady_time),
            iterations.summary,
        )
