"""Matching on a score takes the nearest free row, in the order of R's MatchIt."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise_matching import nearest_match
from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.matching.units import Floats, Truths
from equipoise_matching.shared.errors import UnusableInput

SCRIPT = Path(__file__).with_name("nearest.R")
QUESTIONS = 100
TIME_LIMIT_S = 60.0

treatments = st.lists(st.booleans(), min_size=4, max_size=60).filter(lambda arm: len(set(arm)) == 2)


def scores_of(rows: int, seed: int, *, tied: bool) -> Floats:
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=rows)
    scores = np.round(scores, 1) if tied else scores
    scores[0], scores[1] = -9.0, 9.0
    return scores


def pairs_by_search(
    treat: Truths, score: Floats, order: str, m: int, caliper: float
) -> set[tuple[int, int]]:
    """Return the pairs from the definition: compare every taker with every free donor."""
    takers = np.flatnonzero(treat).tolist()
    free = set(np.flatnonzero(~treat).tolist())
    sign = {"largest": -1.0, "smallest": 1.0}.get(order, 0.0)
    takers.sort(key=lambda row: (sign * score[row], row))
    pairs: list[tuple[int, int]] = []

    def nearest(taker: int) -> tuple[float, int, int]:
        return min((abs(score[taker] - score[row]), taker, row) for row in free)

    for _ in range(m):
        waiting = list(takers)
        while waiting and free:
            if order == "closest":
                distance, taker, donor = min(nearest(taker) for taker in waiting)
            else:
                distance, taker, donor = nearest(waiting[0])
            waiting.remove(taker)
            if distance <= caliper:
                pairs.append((taker, donor))
                free.remove(donor)
    return set(pairs)


@settings(deadline=None, max_examples=150)
@given(
    treatments,
    st.integers(0, 2**32),
    st.booleans(),
    st.sampled_from(["largest", "smallest", "closest", "data"]),
    st.integers(1, 3),
    st.sampled_from([0.3, 2.0, np.inf]),
)
def test_each_row_takes_its_nearest_free_row_in_order(
    arm: list[bool], seed: int, tied: bool, order: Any, m: int, caliper: float
) -> None:
    treat, score = np.array(arm), scores_of(len(arm), seed, tied=tied)
    expected = pairs_by_search(treat, score, order, m, caliper)
    if not expected:
        with pytest.raises(UnusableInput, match="no row has a match"):
            nearest_match(treat, score, order=order, m=m, caliper=caliper)
        return
    design = nearest_match(treat, score, order=order, m=m, caliper=caliper)
    assert {tuple(pair) for pair in design.pairs().tolist()} == expected


@settings(deadline=None, max_examples=60)
@given(treatments, st.integers(0, 2**32), st.booleans(), st.integers(1, 4))
def test_with_replacement_each_row_has_its_nearest_rows(
    arm: list[bool], seed: int, tied: bool, m: int
) -> None:
    treat, score = np.array(arm), scores_of(len(arm), seed, tied=tied)
    design = nearest_match(treat, score, m=m, replace=True)
    expected = []
    for taker in np.flatnonzero(treat).tolist():
        donors = np.flatnonzero(~treat).tolist()
        donors.sort(key=lambda row: (abs(score[row] - score[taker]), row))
        expected += [[taker, donor] for donor in donors[:m]]
    assert design.pairs().tolist() == expected


@pytest.mark.live("Rscript", package="r-base-core")
def test_pairs_are_those_of_matchit(tmp_path: Path) -> None:
    questions = [question_of(seed, [1]) for seed in range(QUESTIONS)]
    answers = answers_of_matchit(questions, tmp_path)
    for question, answer in zip(questions, answers, strict=True):
        pairs = ours(question).pairs()[:, :: 1 if question["estimand"] == "ATT" else -1]
        expected = sorted(zip(answer["takers"], answer["donors"], strict=True))
        assert sorted(map(tuple, (pairs + 1).tolist())) == expected, question


@pytest.mark.live("Rscript", package="r-base-core")
def test_matchit_too_gives_every_row_a_first_match_before_a_second(tmp_path: Path) -> None:
    # MatchIt 4.5.1 now and then skips a nearer row in its second pass. Therefore each choice is
    # compared with the nearest row that MatchIt's earlier choices left free.
    questions = [question_of(seed, [2, 3]) | {"replace": False} for seed in range(QUESTIONS)]
    answers = answers_of_matchit(questions, tmp_path)
    is_nearest = [
        choice
        for question, answer in zip(questions, answers, strict=True)
        for choice in choices(question, answer)
    ]
    assert np.mean(is_nearest) > 0.99
    equal = 0
    for question, answer in zip(questions, answers, strict=True):
        pairs = ours(question).pairs()[:, :: 1 if question["estimand"] == "ATT" else -1]
        expected = sorted(zip(answer["takers"], answer["donors"], strict=True))
        is_equal = sorted(map(tuple, (pairs + 1).tolist())) == expected
        assert is_equal or not all(choices(question, answer)), question
        equal += is_equal
    assert equal > 0.7 * QUESTIONS


def choices(question: dict[str, Any], answer: dict[str, Any]) -> list[bool]:
    """Return for each choice of MatchIt whether it is the nearest free row, pass after pass."""
    treat, score, cell = (np.array(question[name]) for name in ("treat", "score", "cell"))
    is_taker = treat == (1 if question["estimand"] == "ATT" else 0)
    takers = np.flatnonzero(is_taker)
    sign = {"largest": -1.0, "smallest": 1.0}.get(question["order"], 0.0)
    takers = takers[np.argsort(sign * score[takers], kind="stable")]
    chosen = {
        (number, taker - 1): donor - 1
        for number, taker, donor in zip(
            answer["passes"], answer["takers"], answer["donors"], strict=True
        )
    }
    free, found = ~is_taker, []
    for number in range(1, question["m"] + 1):
        for taker in takers.tolist():
            distances = np.where(free, np.abs(score - score[taker]).astype(float), np.inf)
            if question["exact"]:
                distances[cell != cell[taker]] = np.inf
            if question["caliper"] is not None:
                distances[distances > question["caliper"]] = np.inf
            nearest = int(distances.argmin()) if np.isfinite(distances).any() else None
            donor = chosen.get((number, taker))
            found.append(donor == nearest)
            if donor is not None:
                free[donor] = False
    return found


def question_of(seed: int, matches: list[int]) -> dict[str, Any]:
    """Return data without ties, and options that both sides have.

    The scores are large whole numbers, because MatchIt 4.5.1 cuts the fractions of differences off.
    """
    generator = np.random.default_rng([37, seed])
    rows = int(generator.integers(20, 200))
    treat = generator.random(rows) < generator.uniform(0.15, 0.6)
    treat[:2], treat[2:4] = True, False
    return {
        "treat": treat.astype(int).tolist(),
        "score": generator.integers(0, 10**9, size=rows).tolist(),
        "cell": generator.integers(0, 3, size=rows).tolist(),
        "estimand": str(generator.choice(["ATT", "ATC"])),
        "order": str(generator.choice(["largest", "smallest", "data"])),
        "m": int(generator.choice(matches)),
        "caliper": float(generator.choice([2e7, 1e8])) if generator.random() < 0.4 else None,
        "exact": bool(generator.random() < 0.3),
        "replace": bool(generator.random() < 0.2),
    }


def ours(question: dict[str, Any]) -> Design:
    options = {name: question[name] for name in ("estimand", "order", "m", "caliper", "replace")}
    if question["exact"]:
        options["exact"] = question["cell"]
    return nearest_match(question["treat"], question["score"], **options)


def answers_of_matchit(questions: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Return MatchIt's pairs; skip the test if a package of R is missing."""
    look = 'quit(status = !all(c("MatchIt", "jsonlite") %in% rownames(installed.packages())))'
    command = ["Rscript", "--vanilla", "-e", look]
    if subprocess.run(command, timeout=TIME_LIMIT_S, check=False).returncode:
        pytest.skip("misses MatchIt: apt-get install r-cran-matchit r-cran-jsonlite")
    questions_file, answers_file = folder / "questions.json", folder / "answers.json"
    questions_file.write_text(json.dumps(questions))
    command = ["Rscript", "--vanilla", str(SCRIPT), str(questions_file), str(answers_file)]
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )
    assert process.returncode == 0, process.stderr
    answers: list[dict[str, Any]] = json.loads(answers_file.read_text())
    return answers


def test_all_rows_take_a_first_match_before_any_takes_a_second() -> None:
    design = nearest_match([1, 1, 0, 0, 0], [0.50, 0.52, 0.51, 0.515, 0.9], m=2)
    assert design.pairs().tolist() == [[0, 2], [1, 3], [1, 4]]
    assert design.weights.tolist() == [1.0, 1.0, 1.0, 0.5, 0.5]


def test_rows_without_a_match_are_left_out() -> None:
    design = nearest_match([1, 1, 0, 0], [0.1, 0.9, 0.12, 0.5], caliper=0.05)
    assert design.strata is not None
    assert design.strata.tolist() == [0, LEFT_OUT, 0, LEFT_OUT]
    assert design.weights.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert design.details["Rows without a match"] == 1


def test_the_random_order_depends_on_the_seed_and_not_on_the_threads() -> None:
    generator = np.random.default_rng(3)
    treat, score = generator.random(400) < 0.4, generator.random(400)

    def pairs(seed: int, threads: int) -> set[tuple[int, ...]]:
        design = nearest_match(treat, score, order="random", seed=seed, threads=threads)
        return set(map(tuple, design.pairs().tolist()))

    assert pairs(1, 1) == pairs(1, 2)
    assert pairs(1, 1) != pairs(2, 1)


def test_exact_pairs_agree_in_every_exact_column() -> None:
    generator = np.random.default_rng(4)
    treat, score = generator.random(300) < 0.3, generator.random(300)
    place, year = generator.choice(["north", "south"], 300), generator.integers(0, 4, 300)
    design = nearest_match(treat, score, exact={"place": place, "year": year}, order="closest")
    treated, control = design.pairs().T
    assert (place[treated] == place[control]).all()
    assert (year[treated] == year[control]).all()


GOOD: dict[str, Any] = {"treat": [1, 1, 0, 0, 0], "score": [0.1, 0.2, 0.3, 0.4, 0.5]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"treat": [1, 2, 3, 1, 2]}, "not 0 and 1"),
        ({"treat": [1, 1, 1, 1, 1]}, "nothing to compare"),
        ({"treat": [1, 0, 1]}, "rows"),
        ({"score": [0.1, np.nan, 0.3, 0.4, 0.5]}, "score is missing in row 1"),
        ({"score": [0.1, np.inf, 0.3, 0.4, 0.5]}, "score is infinite in row 1"),
        ({"score": [0.3] * 5}, "score is 0.3 in all 5 rows"),
        ({"score": [[0.1, 0.2]] * 5}, "shape"),
        ({"score": ["a", "b", "c", "d", "e"]}, "not a number"),
        ({"estimand": "ATE"}, "no estimand 'ATE'"),
        ({"order": "nearest"}, "no order 'nearest'"),
        ({"m": 0}, "m is 0"),
        ({"m": None}, "m is None"),
        ({"caliper": -1}, "caliper is -1"),
        ({"caliper": "0.1"}, "caliper is '0.1'"),
        ({"caliper": 0.01}, "no row has a match"),
        ({"exact": [1, 2]}, "exact"),
        ({"exact": ["a", "b", "c", "d", "e"]}, "no row has a match"),
        ({"X": [[1.0]] * 4}, "rows"),
    ],
)
def test_bad_input_is_one_error_with_a_hint(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInput, match=message) as caught:
        nearest_match(**(GOOD | change))
    assert caught.value.hint


def test_scores_of_any_scale_give_the_same_pairs() -> None:
    generator = np.random.default_rng(5)
    treat, score = generator.random(200) < 0.4, generator.integers(-500, 500, 200).astype(float)
    plain = nearest_match(treat, score).pairs().tolist()
    for scale in (2.0**-1000, 2.0**900):
        assert nearest_match(treat, score * scale).pairs().tolist() == plain
