"""R's survey and glm, run beside ours, give the same weights and scores."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest

from equipoise_matching.weights.entropy_balance import entropy_balance
from equipoise_matching.weights.scores import treatment_scores
from packages.matching.tests.weights.samples import Sample, two_arms

pytestmark = pytest.mark.live("Rscript", package="r-base-core")

SCRIPT = Path(__file__).with_name("weights.R")
TIME_LIMIT_S = 120.0
SAMPLE = two_arms(400, seed=7)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> pandas.DataFrame:
    """R's weights and scores of the sample; skips where the package survey is missing."""
    look = 'quit(status = !requireNamespace("survey", quietly = TRUE))'
    found = subprocess.run(
        ["Rscript", "--vanilla", "-e", look], check=False, capture_output=True, timeout=TIME_LIMIT_S
    )
    if found.returncode != 0:
        pytest.skip("misses survey: apt-get install r-cran-survey")
    return r_answers(SAMPLE, tmp_path_factory.mktemp("r"))


def r_answers(sample: Sample, folder: Path) -> pandas.DataFrame:
    frame = pandas.DataFrame(sample.matrix, columns=["a", "b", "c", "d"])
    frame.insert(0, "treat", sample.treat)
    frame.to_csv(folder / "data.csv", index=False, float_format="%.17g")
    process = subprocess.run(
        ["Rscript", "--vanilla", SCRIPT, folder / "data.csv", folder / "answers.csv"],
        capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return pandas.read_csv(folder / "answers.csv")


def test_entropy_balancing_is_raking(answers: pandas.DataFrame) -> None:
    weights = entropy_balance(SAMPLE.treat, SAMPLE.matrix).weights
    assert weights == pytest.approx(answers["raking"].to_numpy(), rel=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_the_scores_are_those_of_glm(answers: pandas.DataFrame, link: str) -> None:
    scores = treatment_scores(SAMPLE.treat, SAMPLE.matrix, model=link).probabilities[:, 1]
    assert np.abs(scores - answers[link].to_numpy()).max() < 1e-8
