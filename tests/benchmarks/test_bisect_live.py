"""The repositories of `python -m benchmarks.bisect.live`, and how it judges answers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bisect.live import judged, judged_log, searches, truths
from benchmarks.bisect.repositories import (
    COMMITS,
    LANGUAGES,
    SCENARIOS,
    History,
    Scenario,
    git,
    history,
)

LABELS = {"a": "1", "b": "2", "c": "3"}


def rounds_at(percent: float) -> int:
    return round(100 + percent)


def made_in(folder: Path, scenario: Scenario, language: str = "c") -> History:
    return history(folder / "project", LANGUAGES[language], scenario, rounds_at, seed=3)


def rounds(made: History, commit: str, name: str = "bench.c") -> int:
    """Rounds of the loop in one commit."""
    found = re.search(r"(?:< |range\()(\d+)", git(made.folder, "show", f"{commit}:{name}"))
    assert found is not None
    return int(found[1])


def first_parents(made: History) -> list[str]:
    return git(made.folder, "rev-list", "--first-parent", "--reverse", made.bad).split()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_only_planted_commits_change_what_runs(tmp_path: Path, scenario: Scenario) -> None:
    made = made_in(tmp_path, scenario)
    line = first_parents(made)
    assert (line[0], line[-1], len(line)) == (made.good, made.bad, COMMITS + 1)
    work = [rounds(made, commit) for commit in line]
    changed = [place for place in range(1, len(line)) if work[place] != work[place - 1]]
    assert {line[place] for place in changed} == made.steps
    assert [work[place] - work[place - 1] for place in changed] == list(scenario.steps)
    trees = {git(made.folder, "rev-parse", f"{commit}^{{tree}}") for commit in line}
    assert len(trees) == len(line)
    broken = [
        place
        for place, commit in enumerate(line)
        if "#error" in git(made.folder, "show", f"{commit}:bench.c")
    ]
    assert len(broken) == scenario.broken
    if broken:
        assert changed[0] - 1 in broken and changed[0] not in broken


def test_the_culprit_of_a_merge_is_inside_its_branch(tmp_path: Path) -> None:
    (scenario,) = [one for one in SCENARIOS if one.merged]
    made = made_in(tmp_path, scenario)
    (merge,), (culprit,) = made.steps, made.inner
    assert truths(made) == made.inner
    assert culprit not in first_parents(made)
    assert rounds(made, culprit) == rounds(made, f"{culprit}^") + 5 == rounds(made, f"{merge}^2")
    base = git(made.folder, "merge-base", f"{merge}^1", f"{merge}^2").strip()
    assert rounds(made, base) == rounds(made, f"{merge}^1") == 100


def test_a_broken_commit_fails_and_its_neighbours_run(tmp_path: Path) -> None:
    (scenario,) = [one for one in SCENARIOS if one.broken]
    made = made_in(tmp_path, scenario, "python")
    (culprit,) = made.steps
    status = []
    for commit in (culprit, f"{culprit}~1", made.good):
        git(made.folder, "checkout", "--quiet", commit)
        done = subprocess.run(LANGUAGES["python"].command, cwd=made.folder, capture_output=True)
        status.append(done.returncode)
    assert status == [0, 1, 0]


def test_twenty_searches_are_all_different() -> None:
    plan = searches(20, None, 1)
    assert len({(one.language, one.scenario.name) for one in plan}) == 20
    assert {one.scenario for one in searches(7, "rust", 1)} == set(SCENARIOS)
    assert {one.language for one in searches(7, "rust", 1)} == {"rust"}


def answer(verdict: str, *groups: str, left: str = "") -> dict[str, Any]:
    """A `bisect` of a result document; each group is the commits of one name."""
    return {
        "verdict": verdict,
        "culprits": [
            {"commit": group[-1], "not_built": list(group[:-1]), "ratio": 1.05} for group in groups
        ],
        "candidates": [
            {"commit": one, "status": "suspect" if one in left else "excluded"} for one in LABELS
        ],
    }


@pytest.mark.parametrize(
    ("bisect", "told", "outcome"),
    [
        (answer("culprit", "b"), "2 (+5.0 %)", "right"),
        (answer("culprit", "bc"), "2/3 (+5.0 %)", "right"),
        (answer("culprit", "c"), "3 (+5.0 %)", "wrong name"),
        (answer("several", "b", "c"), "2 (+5.0 %), 3 (+5.0 %)", "wrong name"),
        (answer("set", left="abc"), "3 left, 1 to 3", "set holds culprit"),
        (answer("set", left="c"), "1 left, 3 to 3", "set misses"),
        (answer("undecided", left="abc"), "undecided", "not named"),
        (answer("no difference"), "no difference", "not named"),
    ],
)
def test_an_answer_is_compared_with_what_was_planted(
    bisect: dict[str, Any], told: str, outcome: str
) -> None:
    assert judged(bisect, LABELS, frozenset("b")) == (told, outcome)


@pytest.mark.parametrize(
    ("log", "told", "outcome"),
    [
        ("# bad: [c] x\n# first bad commit: [b] change 2\n", "2", "right"),
        ("# first bad commit: [c] change 3\n", "3", "wrong name"),
        (
            "# possible first bad commit: [c] x\n# possible first bad commit: [b] x\n",
            "2/3",
            "right",
        ),
        ("# bad: [c] x\n", "", "not named"),
    ],
)
def test_the_log_of_git_bisect_is_read(log: str, told: str, outcome: str) -> None:
    assert judged_log(log, LABELS, frozenset("b")) == (told, outcome)
