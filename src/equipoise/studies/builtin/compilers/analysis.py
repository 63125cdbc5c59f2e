"""Each question of compilers answered in one layout and over layouts, and what layout adds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ResultDocument
from equipoise.stats.levels import Levels, variance_by_level
from equipoise.studies.study_data import StudyData, findings_of, times

METRIC = "iteration_s"
LEAST_LAYOUTS = 3
APART = "cannot be told apart"
QUESTIONS = (
    ("gcc: -O3 over -O2", "gcc_O2", "gcc_O3"),
    ("clang: -O3 over -O2", "clang_O2", "clang_O3"),
    ("gcc: this host over any", "gcc_O2", "gcc_O2_native"),
    ("clang: this host over any", "clang_O2", "clang_O2_native"),
    ("gcc: x87 over SSE", "gcc_O2", "gcc_O2_x87"),
    ("clang over gcc, at -O2", "gcc_O2", "clang_O2"),
)
"""Questions, each with its baseline and its candidate."""


def findings(document: ResultDocument) -> Findings:
    """Return the answers in one layout and over layouts, and the variance that layouts add."""
    measured = StudyData(document)
    tables = (_answers(measured), _layouts(measured))
    return findings_of(tables, _paragraphs(measured, tables[0]), _answer(tables[0]))


def over_layouts(
    measured: StudyData, kernel: str, program: str, baseline: str | None = None
) -> Levels | None:
    """Return the mean logarithm of a program's times, or of its ratios to a baseline, by level.

    ``None`` where there are too few layouts or no two trials in each.
    """
    logs: list[float] = []
    units: list[int] = []
    for layout in measured.levels("layout"):
        found = np.log(measured.values(METRIC, program=program, kernel=kernel, layout=layout))
        if baseline is not None:
            below = measured.values(METRIC, program=baseline, kernel=kernel, layout=layout)
            count = min(len(found), len(below))
            # Every block runs every condition, so that the same place is the same block.
            found = found[:count] - np.log(below[:count])
        if len(found) > 1:
            logs.extend(found)
            units.extend([int(layout)] * len(found))
    if len(set(units)) < LEAST_LAYOUTS:
        return None
    seed = measured.document.run.seed % 2**32
    return variance_by_level(np.array(logs), [np.array(units)], ("layout", "trial"), seed=seed)


def _answers(measured: StudyData) -> FindingTable:
    rows: list[tuple[str, ...]] = []
    programs = measured.levels("program")
    for question, baseline, candidate in QUESTIONS:
        if baseline not in programs or candidate not in programs:
            continue
        for kernel in measured.levels("kernel"):
            found = over_layouts(measured, kernel, candidate, baseline)
            if found is None:
                continue
            first = {"kernel": kernel, "layout": measured.levels("layout")[0]}
            alone = measured.ratio(
                METRIC, {"program": candidate, **first}, {"program": baseline, **first}
            )
            rows.append(
                (
                    question,
                    kernel,
                    "–" if alone is None else alone.text(),
                    times(math.exp(found.mean)),
                    _interval(found.within_ci),
                    _interval(found.across_ci),
                    _told_apart(found),
                )
            )
    return FindingTable(
        "In one layout, and over layouts",
        ("question", "kernel", "one layout", "over", "these layouts", "across layouts", "answer"),
        tuple(rows),
        (
            "Change of the time; one layout: the confidence sequence of that layout alone. These "
            "layouts: the interval for the very ones that were drawn; across layouts: for layouts "
            "in general, each layout counting once.",
        ),
    )


def _layouts(measured: StudyData) -> FindingTable:
    rows: list[tuple[str, ...]] = []
    for program, kernel in itertools.product(measured.levels("program"), measured.levels("kernel")):
        found = over_layouts(measured, kernel, program)
        if found is None:
            continue
        layout, trial = found.components
        rows.append(
            (
                program,
                kernel,
                f"{layout.units}",
                _sd(layout.variance),
                _sd(trial.variance),
                f"{100 * layout.share:.0f} %",
                f"{_sd(layout.variance_ci[0])} to {_sd(layout.variance_ci[1])}",
            )
        )
    return FindingTable(
        "What layout adds",
        ("program", "kernel", "layouts", "layout sd", "trial sd", "layout's share", "sd interval"),
        tuple(rows),
        ("Standard deviations of the logarithm of the time; the share is that of the variance.",),
    )


def _paragraphs(measured: StudyData, answers: FindingTable) -> Iterator[str]:
    for question, *_ in QUESTIONS:
        rows = [row for row in answers.rows if row[0] == question]
        apart = [row[1] for row in rows if row[6] != APART]
        if not rows:
            continue
        kernels = f"{len(apart)} of {len(rows)} kernels"
        names = f" ({', '.join(apart)})" if apart else ""
        yield f"{question}: told apart across layouts on {kernels}{names}."


def _answer(answers: FindingTable) -> str:
    apart = sum(row[6] != APART for row in answers.rows)
    if not answers.rows:
        return ""
    return (
        f"Across layouts {apart} of {len(answers.rows)} questions can be told apart; the others "
        "are within what the placing of code does."
    )


def _told_apart(found: Levels) -> str:
    low, high = found.across_ci
    if low <= 0.0 <= high:
        return APART
    return "slower" if low > 0.0 else "faster"


def _interval(bounds: tuple[float, float]) -> str:
    return f"{times(math.exp(bounds[0]))} to {times(math.exp(bounds[1]))}"


def _sd(variance: float) -> str:
    return f"{100 * math.sqrt(max(0.0, variance)):.2g} %"
