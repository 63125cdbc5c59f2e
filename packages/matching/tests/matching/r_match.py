"""Random data and options for R's package Matching and for ours."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from packages.matching.tests.matching.golden import METRICS

Floats = NDArray[np.float64]

SCRIPT = Path(__file__).with_name("answers.R")
TIME_LIMIT_S = 300.0


@dataclass(frozen=True)
class Case:
    """One call of ``match``, with our arguments and with R's."""

    ours: dict[str, Any]
    theirs: dict[str, Any]


def answers_of_r(questions: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """R's answers, all from one process; skips the test where a package of R is missing."""
    if not has_packages():
        pytest.skip("misses Matching: apt-get install r-cran-matching r-cran-jsonlite")
    questions_file, answers_file = folder / "questions.json", folder / "answers.json"
    questions_file.write_text(json.dumps(questions))
    command = ["Rscript", "--vanilla", str(SCRIPT), str(questions_file), str(answers_file)]
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )
    assert process.returncode == 0, process.stderr
    answers: list[dict[str, Any]] = json.loads(answers_file.read_text())
    return answers


def has_packages() -> bool:
    """Whether R finds the packages that the script needs."""
    look = 'quit(status = !all(c("Matching", "jsonlite") %in% rownames(installed.packages())))'
    process = subprocess.run(
        ["Rscript", "--vanilla", "-e", look], timeout=TIME_LIMIT_S, check=False, capture_output=True
    )
    return process.returncode == 0


def covariates(generator: np.random.Generator, rows: int, *, tied: bool) -> Floats:
    """One to five columns; with ``tied`` some are discrete, binary, rounded or copies."""
    kinds = ["continuous", "skewed", "scaled"]
    if tied:
        kinds += ["discrete", "binary", "rounded", "copied", "discrete"]
    columns: list[Floats] = []
    for _ in range(int(generator.integers(1, 6))):
        kind = generator.choice(kinds)
        column = generator.normal(size=rows)
        if kind == "skewed":
            column = np.exp(column)
        elif kind == "scaled":
            column = column * generator.choice([1e-3, 100.0, 1e6])
        elif kind == "discrete":
            column = generator.integers(0, 5, rows).astype(np.float64)
        elif kind == "binary":
            column = (column > 0.2).astype(np.float64)
        elif kind == "rounded":
            column = np.round(column, 1)
        elif kind == "copied" and columns:
            column = columns[-1] * 2.0 + 1.0
        columns.append(column)
    x = np.column_stack(columns)
    if tied and generator.random() < 0.3:
        # Whole rows occur several times.
        x = x[generator.integers(0, rows, rows)]
    varies = np.ptp(x, axis=0) > 0
    return np.ascontiguousarray(x[:, varies]) if varies.any() else generator.normal(size=(rows, 1))


def positive_definite(generator: np.random.Generator, size: int) -> Floats:
    """A full weight matrix."""
    root = generator.normal(size=(size, size))
    return np.asarray(root @ root.T + 0.1 * np.eye(size))


def is_regular(z: Floats) -> bool:
    """Whether R's normal equations of a regression on z keep eight digits."""
    return bool(np.linalg.cond(np.column_stack([np.ones(len(z)), z])) < 1e3)


def case(seed: int) -> Case:
    """Data and options of one seed."""
    generator = np.random.default_rng([4, seed])

    def happens(chance: float) -> bool:
        return bool(generator.random() < chance)

    rows = int(generator.integers(20, 201))
    without_replacement = happens(0.15)
    x = covariates(generator, rows, tied=not without_replacement and happens(0.6))
    columns = x.shape[1]
    treat = (generator.random(rows) < generator.uniform(0.2, 0.6)).astype(np.float64)
    order = generator.permutation(rows)
    treat[order[:4]], treat[order[4:8]] = 1.0, 0.0
    y: Floats = (x / x.std(axis=0)).sum(axis=1) + treat + generator.normal(size=rows)
    y = y * float(generator.choice([1.0, 1000.0]))
    ours: dict[str, Any] = {
        "estimand": str(generator.choice(["ATT", "ATC", "ATE"])),
        "m": int(generator.integers(1, 6)),
    }
    theirs: dict[str, Any] = {
        "Y": y.tolist(),
        "Tr": treat.tolist(),
        "X": x.tolist(),
        "estimand": ours["estimand"],
        "M": ours["m"],
    }
    kind = int(generator.integers(1, 5))
    if kind <= 2:
        ours["metric"], theirs["Weight"] = METRICS[kind], kind
    else:
        diagonal: Floats = np.round(generator.uniform(0.1, 20.0, columns), 3)
        matrix = np.diag(diagonal) if kind == 3 else positive_definite(generator, columns)
        ours["metric"] = diagonal if kind == 3 else matrix
        theirs |= {"Weight": 3, "Weight.matrix": matrix.tolist()}
    if happens(0.2):
        is_exact = [len(np.unique(x[:, column])) < 8 and happens(0.7) for column in range(columns)]
        ours["exact"] = theirs["exact"] = is_exact if happens(0.8) else is_exact[0]
    if happens(0.3):
        wide: list[float] = generator.uniform(0.2, 1.5, size=(columns,)).tolist()
        ours["caliper"] = theirs["caliper"] = wide if happens(0.5) else wide[0]
    if happens(0.3):
        # Without replacement, weights below 1 would have R draw lots among more than M.
        lowest = 1.0 if without_replacement else 0.2
        weights: Floats = generator.uniform(lowest, 2.0, size=(rows,))
        ours["weights"], theirs["weights"] = weights, weights.tolist()
    if happens(0.25):
        ours["restrict"], theirs["restrict"] = restrictions(generator, treat)
    if without_replacement:
        ours["replace"] = theirs["replace"] = False
    z = np.column_stack([generator.normal(size=rows), x[:, 0]]) if happens(0.5) else x
    if happens(0.3) and is_regular(z):
        ours["bias_adjust"] = theirs["BiasAdjust"] = True
        if z is not x:
            ours["covariates"], theirs["Z"] = z, z.tolist()
    if happens(0.3):
        ours["variance_neighbors"] = theirs["Var.calc"] = int(generator.integers(1, 5))
    if happens(0.3):
        ours["variance"], theirs["sample"] = "sample", True
    if happens(0.15):
        ours["common_support"] = theirs["CommonSupport"] = True
    if without_replacement or happens(0.2):
        tolerance = float(generator.choice([0.0, 1e-8, 1e-3, 0.05]))
        # Ties would be broken at random.
        tolerance = 0.0 if without_replacement else tolerance
        ours["distance_tolerance"] = theirs["distance.tolerance"] = tolerance
    return Case(ours | {"y": y, "treat": treat, "X": x}, theirs)


def restrictions(
    generator: np.random.Generator, treat: Floats
) -> tuple[list[list[float]], list[list[float]]]:
    """Triples of a treated unit, a control and a distance: rows from 0, and from 1 as in R."""
    triples = []
    for _ in range(int(generator.integers(1, 12))):
        first = int(generator.choice(np.flatnonzero(treat == 1)))
        second = int(generator.choice(np.flatnonzero(treat == 0)))
        distance = -1.0 if generator.random() < 0.4 else float(generator.uniform(0.0, 0.5))
        triples.append([first, second, distance])
    return triples, [[first + 1, second + 1, distance] for first, second, distance in triples]


def balance_case(seed: int) -> Case:
    """A match with replacement, and whether weights and pairs count in the balance."""
    generator = np.random.default_rng([5, seed])
    rows = int(generator.integers(20, 201))
    x = covariates(generator, rows, tied=True)
    treat = (generator.random(rows) < 0.4).astype(np.float64)
    treat[:4], treat[4:8] = 1.0, 0.0
    m, estimand = int(generator.integers(1, 4)), str(generator.choice(["ATT", "ATC", "ATE"]))
    paired = bool(generator.random() < 0.7)
    weights = generator.uniform(0.3, 3.0, rows) if generator.random() < 0.4 else None
    match_options = {"Tr": treat.tolist(), "X": x.tolist(), "estimand": estimand, "M": m}
    theirs: dict[str, Any] = {"match": match_options, "paired": paired}
    if weights is not None:
        theirs["weights"] = weights.tolist()
    ours = {"treat": treat, "X": x, "estimand": estimand, "m": m}
    return Case({"match": ours, "paired": paired, "weights": weights}, theirs)


def univariate_case(seed: int) -> Case:
    """Two samples of different lengths, or pairs with weights."""
    generator = np.random.default_rng([6, seed])
    matched = bool(generator.random() < 0.5)
    first = int(generator.integers(5, 150))
    second = first if matched else int(generator.integers(5, 150))
    rounding = int(generator.integers(0, 6))
    treated = np.round(generator.normal(0.3, 1.0, first), rounding)
    control = np.round(generator.normal(0.0, 1.3, second), rounding)
    weights = generator.uniform(0.2, 2.0, first) if matched else None
    estimand = str(generator.choice(["ATT", "ATC", "ATE"]))
    paired = bool(generator.random() < 0.7)
    theirs: dict[str, Any] = {
        "Tr": treated.tolist(),
        "Co": control.tolist(),
        "match": matched,
        "paired": paired,
        "estimand": estimand,
        "ks": True,
        "nboots": 10,
    }
    ours: dict[str, Any] = {
        "treated": treated,
        "control": control,
        "matched": matched,
        "paired": paired,
        "estimand": estimand,
        "boot": 0,
        "r_compatible": True,
    }
    if weights is not None:
        ours["weights_treated"], theirs["weights"] = weights, weights.tolist()
    return Case(ours, theirs)
