"""The built-in study `compilers`: what is luck in one layout and true over layouts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.model.result import ResultDocument
from equipoise_studies.builtin.compilers.analysis import findings, over_layouts
from equipoise_studies.study_data import StudyData
from packages.equipoise.tests.documents import document_of

LAYOUTS, BLOCKS = 12, 10
LAYOUT_SD, TRIAL_SD = 0.05, 0.01


def planted(effect: float, *, seed: int = 3) -> ResultDocument:
    """gcc_O3 over gcc_O2 is ``e**effect``; each of their layouts adds 5 %, each trial 1 %."""
    generator = np.random.default_rng(seed)
    names = [f"gcc_{level} nbody {n}" for level in ("O2", "O3") for n in range(1, LAYOUTS + 1)]
    document = document_of(*names, blocks=BLOCKS)
    level = {
        name: LAYOUT_SD * generator.normal() + (effect if name.startswith("gcc_O3") else 0.0)
        for name in names
    }
    factors = ("program", "kernel", "layout")
    return replace(
        document,
        comparisons=(),
        conditions=tuple(
            replace(condition, levels=dict(zip(factors, condition.name.split(), strict=True)))
            for condition in document.conditions
        ),
        trials=tuple(
            replace(
                row,
                metrics={
                    "iteration_s": math.exp(
                        level[row.condition] + TRIAL_SD * float(generator.normal())
                    )
                },
            )
            for row in document.trials
        ),
    )


def answers(document: ResultDocument) -> list[str]:
    return [row[6] for row in findings(StudyData(document)).tables[0].rows]


def test_effect_of_layouts_alone_is_no_difference_over_layouts() -> None:
    verdicts = [answers(planted(0.0, seed=seed)) for seed in range(20)]
    apart = sum(verdict != ["no difference shown"] for verdict in verdicts)
    # 5 % of 20 is 1; more than 4 has a chance below 0.3 %.
    assert apart <= 4


def test_certain_difference_in_one_layout_disappears_over_layouts() -> None:
    measured = StudyData(planted(0.0))
    alone = measured.ratio("iteration_s", "program", "gcc_O3", "gcc_O2", kernel="nbody", layout="1")
    assert alone is not None and (alone.is_certainly_above or alone.is_certainly_below)
    over = over_layouts(measured, "nbody", "gcc_O3", "gcc_O2")
    assert over is not None and over.across_ci[0] < 0.0 < over.across_ci[1]


@pytest.mark.parametrize(("effect", "answer"), [(0.3, "slower"), (-0.3, "faster")])
def test_true_effect_is_found(effect: float, answer: str) -> None:
    result = findings(StudyData(planted(effect)))
    assert result.answer.startswith("Across layouts, 1 of 1 questions show a difference")
    assert [row[6] for row in result.tables[0].rows] == [answer]
    assert "1 of 1 kernels (nbody)" in result.paragraphs[0]


def test_the_variance_of_layouts_is_found() -> None:
    covered, seeds = 0, 20
    for seed in range(seeds):
        over = over_layouts(StudyData(planted(0.0, seed=seed)), "nbody", "gcc_O2")
        assert over is not None
        layout, trial = over.components
        covered += layout.variance_ci[0] <= LAYOUT_SD**2 <= layout.variance_ci[1]
        assert math.sqrt(trial.variance) == pytest.approx(TRIAL_SD, rel=0.4)
        assert layout.share > 0.5
    # 95 % of 20 is 19; fewer than 16 has a chance below 0.3 %.
    assert covered >= 16


def test_programs_that_were_not_run_have_no_question() -> None:
    rows = findings(StudyData(planted(0.0))).tables[0].rows
    assert [row[0] for row in rows] == ["gcc: -O3 over -O2"]
