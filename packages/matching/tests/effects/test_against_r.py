"""R's sandwich, survival, mice and MatchIt give the same effects and errors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise_matching.effects.estimate import effect_of
from equipoise_matching.effects.imputed import pool_effects
from equipoise_matching.effects.result import EffectEstimate
from equipoise_matching.effects.sample import EffectOptions
from packages.matching.tests.effects.samples import Data, data_of, design_of

pytestmark = pytest.mark.live("Rscript", package="r-base-core")

SCRIPT = Path(__file__).with_name("answers.R")
PACKAGES = ("jsonlite", "sandwich", "survival", "mice", "MatchIt")
TIME_LIMIT_S = 120.0
RELATIVE = 1e-8
SEEDS = (1, 2, 3)
FAMILIES = {"gaussian": "number", "binomial": "binary", "poisson": "events"}
SCALES = {
    "gaussian": ("difference",),
    "binomial": ("difference", "risk ratio", "odds ratio"),
    "poisson": ("rate ratio",),
}
AT = 0.5


def answers_of_r(questions: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Return R's answers, all from one process; skip the test if R lacks a package."""
    listed = ", ".join(f'"{name}"' for name in PACKAGES)
    look = f"cat(setdiff(c({listed}), rownames(installed.packages())))"
    found = subprocess.run(
        ["Rscript", "--vanilla", "-e", look], capture_output=True, text=True, timeout=TIME_LIMIT_S
    )
    if missing := found.stdout.split():
        names = " ".join(f"r-cran-{name.lower()}" for name in missing)
        pytest.skip(f"misses {', '.join(missing)}: apt-get install {names}")
    questions_file, answers_file = folder / "questions.json", folder / "answers.json"
    questions_file.write_text(json.dumps(questions))
    done = subprocess.run(
        ["Rscript", "--vanilla", str(SCRIPT), str(questions_file), str(answers_file)],
        capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(answers_file.read_text())
    return answers


def lists(**arrays: Any) -> dict[str, Any]:
    return {
        name: np.asarray(values).tolist() for name, values in arrays.items() if values is not None
    }


def target_of(data: Data, estimand: str) -> Any:
    """The weight of each row in the population of the estimand."""
    return {
        "ATT": data.weights * (data.treat == 1),
        "ATC": data.weights * (data.treat == 0),
        "ATE": np.ones(len(data.treat)),
    }[estimand]


def model_questions() -> list[dict[str, Any]]:
    return [
        {
            "kind": "model",
            "family": family,
            **lists(
                X=data.x.T,
                y=getattr(data, outcome),
                treat=data.treat,
                weights=data.weights,
                target=target_of(data, estimand),
                clusters=data.strata if by_strata else None,
            ),
        }
        for seed in SEEDS
        for data in (data_of(seed),)
        for family, outcome in FAMILIES.items()
        for estimand in ("ATT", "ATC", "ATE")
        for by_strata in (True, False)
    ]


def survival_questions() -> list[dict[str, Any]]:
    questions = []
    for seed in SEEDS:
        data = data_of(seed)
        for clusters in (data.strata, None):
            questions.append({
                "kind": "cox",
                **lists(time=data.time, event=data.event, treat=data.treat, weights=data.weights,
                        clusters=clusters),
            })  # fmt: skip
        for arm in (0, 1):
            rows = data.treat == arm
            questions.append({
                "kind": "chance",
                "at": AT,
                **lists(time=data.time[rows], event=data.event[rows], weights=data.weights[rows]),
            })  # fmt: skip
    return questions


POOLED = [([1.0, 1.3, 0.9, 1.6, 1.1], [0.2, 0.25, 0.21, 0.3, 0.22], 60, 3)]


def matched_questions() -> list[dict[str, Any]]:
    data = data_of(5, rows=300)
    return [{"kind": "matched", "method": "nearest",
             **lists(X=data.x.T, y=data.number, treat=data.treat)}]  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """R's answers by kind; R runs once."""
    pooled = [{"kind": "pooled", "Q": q, "U": u, "n": n, "k": k} for q, u, n, k in POOLED]
    questions = [*model_questions(), *survival_questions(), *pooled, *matched_questions()]
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for question, answer in zip(
        questions, answers_of_r(questions, tmp_path_factory.mktemp("r")), strict=True
    ):
        by_kind.setdefault(question["kind"], []).append(answer)
    return by_kind


def test_g_computation_and_its_robust_errors_are_those_of_sandwich(
    answers: dict[str, list[dict[str, Any]]],
) -> None:
    theirs = iter(answers["model"])
    for seed in SEEDS:
        data = data_of(seed)
        for family, outcome in FAMILIES.items():
            for estimand in ("ATT", "ATC", "ATE"):
                for error in ("clusters", "rows"):
                    answer = next(theirs)
                    for scale in SCALES[family]:
                        options: Any = {"scale": scale, "error": error, "variance": "sample"}
                        effect = effect_of(
                            getattr(data, outcome), design_of(data, estimand), options
                        )
                        names = {"difference": "difference_se", "odds ratio": "log_odds_se"}
                        se = answer[names.get(scale, "log_ratio_se")]
                        where = (seed, family, estimand, error, scale)
                        assert effect.arm_values == pytest.approx(
                            answer["means"][::-1], rel=RELATIVE
                        ), where
                        assert effect.se == pytest.approx(se, rel=RELATIVE), where


def test_the_weighted_cox_model_and_its_error_are_those_of_coxph(
    answers: dict[str, list[dict[str, Any]]],
) -> None:
    theirs = iter(answers["cox"])
    for seed in SEEDS:
        data = data_of(seed)
        for error, clusters in (("clusters", len(np.unique(data.strata))), ("rows", None)):
            answer = next(theirs)
            options: Any = {"event": data.event, "error": error}
            effect = effect_of(data.time, design_of(data), options)
            # coxph has no factor for few clusters.
            factor = 1.0 if clusters is None else np.sqrt(clusters / (clusters - 1))
            assert np.log(effect.estimate) == pytest.approx(answer["log_ratio"], rel=RELATIVE)
            assert effect.se == pytest.approx(factor * answer["se"], rel=RELATIVE)


def test_chances_of_survival_and_their_errors_are_those_of_survfit(
    answers: dict[str, list[dict[str, Any]]],
) -> None:
    theirs = iter(answers["chance"])
    for seed in SEEDS:
        data = data_of(seed)
        options: EffectOptions = {
            "event": data.event, "error": "rows", "scale": "survival difference", "at": AT
        }  # fmt: skip
        effect = effect_of(data.time, design_of(data), options)
        control, treated = next(theirs), next(theirs)
        assert effect.arm_values == pytest.approx(
            (treated["chance"], control["chance"]), rel=RELATIVE
        )
        assert effect.se == pytest.approx(np.hypot(control["se"], treated["se"]), rel=RELATIVE)


def test_pooled_effects_are_those_of_mice(answers: dict[str, list[dict[str, Any]]]) -> None:
    for (estimates, variances, rows, parameters), answer in zip(
        POOLED, answers["pooled"], strict=True
    ):
        effects = [
            EffectEstimate(
                estimate=estimate, se=variance**0.5, interval=(0.0, 0.0), p_value=1.0,
                scale="difference", estimand="ATE", contrast=("1", "0"), method="", error="",
                rows=rows, degrees_of_freedom=rows - parameters,
            )
            for estimate, variance in zip(estimates, variances, strict=True)
        ]  # fmt: skip
        pooled = pool_effects(effects).effect
        assert pooled.estimate == pytest.approx(answer["estimate"], rel=RELATIVE)
        assert pooled.se**2 == pytest.approx(answer["variance"], rel=RELATIVE)
        assert pooled.degrees_of_freedom == pytest.approx(answer["df"], rel=RELATIVE)


def test_the_effect_after_pairs_of_matchit_is_that_of_its_vignette(
    answers: dict[str, list[dict[str, Any]]],
) -> None:
    (answer,) = answers["matched"]
    data = data_of(5, rows=300)
    weights, subclass = np.array(answer["weights"], float), np.array(answer["subclass"])
    design = design_of(data, weights=weights, strata=subclass)
    effect = effect_of(data.number, design, {"variance": "sample"})
    assert effect.clusters == int((data.treat == 1).sum())
    assert effect.estimate == pytest.approx(answer["estimate"], rel=RELATIVE)
    assert effect.se == pytest.approx(answer["se"], rel=RELATIVE)
