"""``python -m benchmarks.bisect.live``: real searches in repositories with planted steps.

Each search is `equipoise bisect` in a repository of 64 commits that a script makes, of which all
but the planted ones change comments and unused functions. Beside it `git bisect run` searches with
a script that runs hyperfine, in the same total time: a commit is bad if its median is beyond the
middle between those of both ends. Ends with 1 if `equipoise bisect` names a wrong commit or fails.
Wants an idle machine.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from benchmarks.bisect.repositories import (
    LANGUAGES,
    SCENARIOS,
    History,
    Language,
    Scenario,
    git,
    history,
    pace,
)

BUDGET_S = 30.0
"""Of one search: twenty searches, with git bisect beside, then take at most 25 minutes."""
MIN_S = 0.1
"""Seconds that git bisect has for one commit, however short the search beside it was."""
TOOLS = ("git", "cc", "make", "cargo", "hyperfine", "equipoise")
COLUMNS = (
    *("program", "planted", "at", "equipoise bisect", "answer", "trials", "builds", "s"),
    *("git bisect run", "answer", "runs", "s"),
)

Outcome = Literal["right", "wrong name", "set holds culprit", "set misses", "not named", "failed"]


class Search(Struct, frozen=True):
    """One repository to be searched."""

    language: str
    scenario: Scenario
    seed: int


class Answer(Struct, frozen=True):
    """What one tool said about a repository, and what that cost."""

    text: str
    outcome: Outcome
    runs: int
    seconds: float
    builds: int = 0


def main() -> int:
    """0 if nothing was named wrong, 1 if something was or a search failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bisect.live",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--searches", type=int, default=20, metavar="N", help="(default 20)")
    parser.add_argument("--only", choices=tuple(LANGUAGES), metavar="KIND", help="of this program")
    parser.add_argument(
        "--budget", type=float, default=BUDGET_S, metavar="S", help="seconds of one search"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"{missing[0]} is missing on the PATH", file=sys.stderr)
        return 2
    began = time.monotonic()
    plan = searches(options.searches, options.only, options.seed)
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + " --- |" * len(COLUMNS), flush=True)
    pairs: list[tuple[Answer, Answer]] = []
    with tempfile.TemporaryDirectory(prefix="bisect-live-") as scratch:
        paces = {
            name: pace(Path(scratch, f"pace-{name}"), LANGUAGES[name])
            for name in dict.fromkeys(search.language for search in plan)
        }
        for number, search in enumerate(plan):
            folder = Path(scratch, f"search-{number}")
            pairs.append(run_search(search, folder, paces[search.language], options.budget))
            shutil.rmtree(folder)
    for place, tool in enumerate(("equipoise bisect", "git bisect run")):
        counts = Counter(pair[place].outcome for pair in pairs)
        print(f"\n{tool}: " + ", ".join(f"{counts[one]} {one}" for one in counts))
    print(
        f"\n{len(pairs)} searches, seed {options.seed}, {(time.monotonic() - began) / 60:.1f} min"
    )
    return int(any(ours.outcome in ("wrong name", "failed") for ours, _ in pairs))


def searches(count: int, only: str | None, seed: int) -> list[Search]:
    """Return the first searches, in which programs and what is planted take turns."""
    made: list[Search] = []
    number = 0
    while len(made) < count:
        language = list(LANGUAGES)[number % len(LANGUAGES)]
        if only in (None, language):
            scenario = SCENARIOS[number % len(SCENARIOS)]
            made.append(Search(language, scenario, 1000 * seed + number))
        number += 1
    return made


def run_search(
    search: Search, folder: Path, rounds_at: Callable[[float], int], budget_s: float
) -> tuple[Answer, Answer]:
    """Search one repository with both tools; print their row."""
    language = LANGUAGES[search.language]
    made = history(folder / "project", language, search.scenario, rounds_at, search.seed)
    ours = by_equipoise(made, language, folder, budget_s, search.seed)
    theirs = by_git(made, language, folder, ours.seconds)
    planted = [made.labels[one] for one in made.labels if one in made.steps | made.inner]
    row = (
        *(language.name, search.scenario.name, ", ".join(planted)),
        *(ours.text, ours.outcome, str(ours.runs), str(ours.builds), f"{ours.seconds:.0f}"),
        *(theirs.text, theirs.outcome, str(theirs.runs), f"{theirs.seconds:.0f}"),
    )
    print("| " + " | ".join(row) + " |", flush=True)
    return ours, theirs


def by_equipoise(
    made: History, language: Language, folder: Path, budget_s: float, seed: int
) -> Answer:
    """Search with `equipoise bisect`; with a branch inside it has the time of two searches."""
    written = folder / "result.json"
    build = () if language.build is None else ("--build", language.build)
    budget = 2 * budget_s if made.inner else budget_s
    began = time.monotonic()
    done = subprocess.run(
        [
            *("equipoise", "bisect", "--good", made.good, "--bad", made.bad, *build),
            *("--budget", f"{budget:g}", "--seed", str(seed), "--quiet"),
            *("--json", str(written), "--ledger", str(folder / "ledger.db")),
            *("--", *language.command),
        ],
        cwd=made.folder,
        env={**environment(), "EQUIPOISE_BUILDS": str(folder / "builds")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return Answer(f"status {done.returncode}", "failed", 0, seconds)
    bisect: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))["bisect"]
    text, outcome = judged(bisect, made.labels, made.steps)
    if outcome == "right" and made.inner:
        # With the merge, all that its branch may hold is known.
        inner: tuple[str, Outcome] = ("", "not named")
        if bisect["branches"]:
            inner = judged(bisect["branches"][0], made.labels, made.inner)
        text = f"{text}: {inner[0]}"
        outcome = "set holds culprit" if inner[1] == "not named" else inner[1]
    return Answer(text, outcome, bisect["trials"], seconds, bisect["builds"])


def judged(
    bisect: Mapping[str, Any], labels: Mapping[str, str], truth: AbstractSet[str]
) -> tuple[str, Outcome]:
    """Return the answer of a search in words, and how it compares with what was planted.

    A name that stands for several commits, all but one of which do not build, is right if one of
    them was planted.
    """
    names: list[str] = []
    right: list[bool] = []
    for culprit in bisect["culprits"]:
        group = [*culprit["not_built"], culprit["commit"]]
        right.append(any(one in truth for one in group))
        step = "" if culprit["ratio"] is None else f" ({100 * (culprit['ratio'] - 1):+.1f} %)"
        names.append("/".join(labels[one] for one in group) + step)
    if names:
        return ", ".join(names), "right" if all(right) else "wrong name"
    if bisect["verdict"] != "set":
        return bisect["verdict"], "not named"
    left = [one["commit"] for one in bisect["candidates"] if one["status"] == "suspect"]
    outcome: Outcome = "set misses" if truth.isdisjoint(left) else "set holds culprit"
    return f"{len(left)} left, {labels[left[0]]} to {labels[left[-1]]}", outcome


def by_git(made: History, language: Language, folder: Path, seconds: float) -> Answer:
    """Search with `git bisect run` and hyperfine in about so many seconds, builds included."""
    began = time.monotonic()
    commits = int(git(made.folder, "rev-list", "--count", f"{made.good}..{made.bad}"))
    # The good commit is visited twice, the bad one once.
    share = max(MIN_S, seconds / (3 + math.ceil(math.log2(commits))))
    exported, script, log = folder / "times.csv", folder / "trial.sh", folder / "visits"
    build = language.build or "rm -rf program/__pycache__"

    def write(runs: int, threshold: float) -> None:
        command = shlex.quote(shlex.join(language.command))
        script.write_text(
            f"{build} > /dev/null 2>&1 || exit 125\n"
            f"hyperfine -N --warmup 1 --runs {runs} --style none --command-name trial "
            f"--export-csv {exported} {command} > /dev/null 2>&1 || exit 125\n"
            f"echo {runs} >> {log}\n"
            f"awk -F, 'NR == 2 {{ exit !($4 < {threshold!r}) }}' {exported}\n",
            encoding="utf-8",
        )

    def median(commit: str) -> float:
        git(made.folder, "checkout", "--quiet", commit)
        subprocess.run(["sh", script], cwd=made.folder, env=environment(), check=False)
        with exported.open(encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(file)
        return float(row["median"])

    # What a build takes besides is known after the first commit.
    write(2, 0.0)
    visited = time.monotonic()
    trial = median(made.good)
    overhead = time.monotonic() - visited - 3 * trial
    runs = max(2, int((share - overhead) / trial) - 1)
    write(runs, 0.0)
    write(runs, (median(made.good) + median(made.bad)) / 2.0)
    git(made.folder, "bisect", "start", made.bad, made.good)
    subprocess.run(
        ["git", "bisect", "run", "sh", str(script)],
        cwd=made.folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    text, outcome = judged_log(git(made.folder, "bisect", "log"), made.labels, truths(made))
    count = sum(map(int, log.read_text(encoding="utf-8").split()))
    return Answer(text, outcome, count, time.monotonic() - began)


def truths(made: History) -> frozenset[str]:
    """Return the commits that `git bisect` may name: it searches merged branches, too."""
    return made.inner or made.steps


def judged_log(log: str, labels: Mapping[str, str], truth: AbstractSet[str]) -> tuple[str, Outcome]:
    """Return the answer of `git bisect` in words, and how it compares with what was planted."""
    named: Sequence[str] = re.findall(r"^# first bad commit: \[(\w+)\]", log, re.MULTILINE)
    if named:
        return labels[named[0]], "right" if named[0] in truth else "wrong name"
    left: Sequence[str] = re.findall(r"^# possible first bad commit: \[(\w+)\]", log, re.MULTILINE)
    if left:
        text = "/".join(sorted((labels[one] for one in left), key=lambda one: (len(one), one)))
        return text, "right" if any(one in truth for one in left) else "wrong name"
    return "", "not named"


def environment() -> dict[str, str]:
    """Return the variables of all programs: none that moves the builds of cargo."""
    return {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}


if __name__ == "__main__":
    sys.exit(main())
