"""Compare compilers in one memory layout and over layouts; show the variance of layouts.

A kernel is a small computation, such as ``nbody``. A program has all kernels, compiled in one way,
such as ``gcc_O2``. An answer compares two programs on one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from equipoise.model.result import Findings, FindingTable
from equipoise.stats.levels import Levels, variance_by_level
from equipoise_studies.study_data import UNKNOWN, StudyData, factor_text, findings_of, ratio_text

METRIC = "iteration_s"
"""Seconds of an iteration of a kernel."""
MIN_LAYOUTS = 3
"""Minimum number of layouts for an answer across layouts."""
QUESTIONS = (
    ("gcc: -O3 over -O2", "gcc_O2", "gcc_O3"),
    ("clang: -O3 over -O2", "clang_O2", "clang_O3"),
    ("gcc: this host over any", "gcc_O2", "gcc_O2_native"),
    ("clang: this host over any", "clang_O2", "clang_O2_native"),
    ("gcc: x87 over SSE", "gcc_O2", "gcc_O2_x87"),
    ("clang over gcc, at -O2", "gcc_O2", "clang_O2"),
)
"""Questions, each with its baseline and its candidate."""


class Answer(Struct, frozen=True):
    """The answer to a question for one kernel."""

    question: str
    kernel: str
    one_layout: str
    """Ratio in the first layout, with its interval, as text."""
    log_ratio: Levels
    """Mean log ratio over layouts, with its intervals."""

    @property
    def verdict(self) -> str:
        """Verdict across layouts; empty without a difference."""
        low, high = self.log_ratio.across_ci
        return "slower" if low > 0.0 else "faster" if high < 0.0 else ""

    def row(self) -> tuple[str, ...]:
        """Return the row of the table."""
        return (
            self.question,
            self.kernel,
            self.one_layout,
            factor_text(math.exp(self.log_ratio.mean)),
            *(
                " to ".join(factor_text(math.exp(bound)) for bound in interval)
                for interval in (self.log_ratio.within_ci, self.log_ratio.across_ci)
            ),
            self.verdict or "no difference shown",
        )


def findings(data: StudyData) -> Findings:
    """Return the answers in one layout and over layouts, and the variance that layouts add."""
    answers = list(_answers(data))
    table = FindingTable(
        "In one layout, and over layouts",
        ("question", "kernel", "one layout", "over", "these layouts", "across layouts", "answer"),
        tuple(answer.row() for answer in answers),
        (
            "Change of the time. One layout: the confidence sequence of that layout alone. These "
            "layouts: the interval for the layouts that were drawn. Across layouts: the interval "
            "for layouts in general, in which each layout counts once.",
        ),
    )
    different_count = sum(bool(answer.verdict) for answer in answers)
    summary = (
        f"Across layouts, {different_count} of {len(answers)} questions show a difference; the "
        "others are within the effect of code placement."
    )
    tables = (table, _layouts(data))
    return findings_of(tables, _paragraphs(answers), summary if answers else "")


def over_layouts(
    data: StudyData, kernel: str, program: str, baseline: str | None = None
) -> Levels | None:
    """Return the mean log time of a program, with the variance of layouts and of trials.

    With a baseline, the result is the mean log ratio to the baseline. Layouts with fewer than two
    trials are left out; ``None`` for fewer than ``MIN_LAYOUTS`` layouts.
    """
    log_values: list[float] = []
    layout_numbers: list[int] = []
    for layout in data.levels("layout"):
        levels = {"kernel": kernel, "layout": layout}
        times = np.log(data.values(METRIC, program=program, **levels))
        if baseline is not None:
            baseline_times = data.values(METRIC, program=baseline, **levels)
            count = min(len(times), len(baseline_times))
            # Every block runs every condition, so equal indices are of the same block.
            times = times[:count] - np.log(baseline_times[:count])
        if len(times) > 1:
            log_values.extend(times)
            layout_numbers.extend([int(layout)] * len(times))
    if len(set(layout_numbers)) < MIN_LAYOUTS:
        return None
    seed = data.document.run.seed % 2**32
    return variance_by_level(
        np.array(log_values), [np.array(layout_numbers)], ("layout", "trial"), seed=seed
    )


def _answers(data: StudyData) -> Iterator[Answer]:
    programs = data.levels("program")
    for question, baseline, candidate in QUESTIONS:
        for kernel in data.levels("kernel") if {baseline, candidate} <= {*programs} else ():
            log_ratio = over_layouts(data, kernel, candidate, baseline)
            if log_ratio is not None:
                first = {"kernel": kernel, "layout": data.levels("layout")[0]}
                first_ratio = data.ratio(METRIC, "program", candidate, baseline, **first)
                yield Answer(question, kernel, ratio_text(first_ratio, UNKNOWN), log_ratio)


def _layouts(data: StudyData) -> FindingTable:
    rows: list[tuple[str, ...]] = []
    for levels in data.combinations("program", "kernel"):
        log_time = over_layouts(data, **levels)
        if log_time is not None:
            layout, trial = log_time.components
            rows.append(
                (
                    *levels.values(),
                    f"{layout.units}",
                    _sd_text(layout.variance),
                    _sd_text(trial.variance),
                    f"{100 * layout.share:.0f} %",
                    " to ".join(map(_sd_text, layout.variance_ci)),
                )
            )
    return FindingTable(
        "Variance that layout adds",
        ("program", "kernel", "layouts", "layout sd", "trial sd", "layout's share", "sd interval"),
        tuple(rows),
        ("Standard deviations of the logarithm of the time; the share is that of the variance.",),
    )


def _paragraphs(answers: list[Answer]) -> Iterator[str]:
    for question in dict.fromkeys(answer.question for answer in answers):
        verdicts = {
            answer.kernel: answer.verdict for answer in answers if answer.question == question
        }
        different = [kernel for kernel, verdict in verdicts.items() if verdict]
        kernels = f" ({', '.join(different)})" if different else ""
        yield (
            f"{question}: a difference across layouts on {len(different)} of {len(verdicts)} "
            f"kernels{kernels}."
        )


def _sd_text(variance: float) -> str:
    return f"{100 * math.sqrt(max(0.0, variance)):.2g} %"
