"""R's MatchIt beside a design: all questions of a test in one process of R."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

SCRIPT = Path(__file__).with_name("strata.R")
TIME_LIMIT_S = 120.0
PACKAGES = "MatchIt, jsonlite"


@dataclass(frozen=True)
class Answer:
    """Weights of MatchIt, and its strata: -1 for rows that it leaves out; shape (n,)."""

    weights: NDArray[np.float64]
    strata: NDArray[np.int64]


def answers_of_matchit(questions: list[dict[str, Any]], folder: Path) -> list[Answer]:
    """Return the answer to each question: ``columns`` with ``treat``, and ``options``.

    Skip the test where R or one of its packages is missing.
    """
    if not has_packages():
        pytest.skip(f"misses R's {PACKAGES}: apt-get install r-cran-matchit r-cran-jsonlite")
    questions_file, answers_file = folder / "questions.json", folder / "answers.json"
    questions_file.write_text(json.dumps(questions))
    command = ["Rscript", "--vanilla", str(SCRIPT), str(questions_file), str(answers_file)]
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )
    assert process.returncode == 0, process.stderr
    return [
        Answer(np.asarray(answer["weights"], dtype=np.float64), np.asarray(answer["strata"]))
        for answer in json.loads(answers_file.read_text())
    ]


def has_packages() -> bool:
    """Return whether R finds the packages of the script."""
    look = 'quit(status = !all(c("MatchIt", "jsonlite") %in% rownames(installed.packages())))'
    try:
        process = subprocess.run(
            ["Rscript", "--vanilla", "-e", look],
            timeout=TIME_LIMIT_S,
            check=False,
            capture_output=True,
        )
    except FileNotFoundError:
        return False
    return process.returncode == 0


def shares(weights: NDArray[np.float64], treated: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights divided by their sum within each arm, shape (n,)."""
    sums = np.where(treated, weights[treated].sum(), weights[~treated].sum())
    return np.asarray(weights / sums)


def partition(strata: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return strata numbered in the order of their first rows, so that two can be compared."""
    numbers: dict[int, int] = {-1: -1}
    for stratum in strata.tolist():
        numbers.setdefault(stratum, len(numbers) - 1)
    return np.array([numbers[stratum] for stratum in strata.tolist()])
