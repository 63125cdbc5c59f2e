"""Classify the warm-up of every runtime on every kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import UNKNOWN, StudyData, findings_of, number_text, quantity_text

METRIC = "iteration_s"


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
    by_class: dict[str, list[str]] = {}
    for runtime, kernel, class_name, *_ in table.rows:
        by_class.setdefault(class_name, []).append(f"{runtime} on {kernel}")
    counts = Counter({class_name: len(names) for class_name, names in by_class.items()})
    listed = ", ".join(f"{count} {class_name}" for class_name, count in counts.most_common())
    answer = f"{len(table.rows)} pairs of runtime and kernel: {listed}." if listed else ""
    return findings_of(
        (table,),
        (f"{class_name}: {', '.join(names)}." for class_name, names in by_class.items()),
        answer,
    )


def _rows(data: StudyData) -> Iterator[tuple[str, ...]]:
    for condition in data.document.conditions:
        shape = condition.iterations.get(METRIC)
        if shape is None or shape.kind is None:
            continue
        firsts = [
            row.iterations[METRIC][0]
            for row in data.document.trials
            if row.analysed and row.condition == condition.name and row.iterations.get(METRIC)
        ]
        first = float(np.median(firsts))
        starts = [trial.steady_from for trial in shape.trials if trial.steady_from is not None]
        steady_times = [trial.steady for trial in shape.trials if trial.steady is not None]
        steady = float(np.mean(steady_times)) if shape.has_steady_state else None
        yield (
            condition.levels["runtime"],
            condition.levels["kernel"],
            shape.kind,
            f"{int(np.median(starts)) + 1}" if starts else UNKNOWN,
            quantity_text(METRIC, first),
            quantity_text(METRIC, steady),
            UNKNOWN if steady is None else number_text(first / steady),
            shape.summary,
        )
