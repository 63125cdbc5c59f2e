"""How often joined gates of three real slices are right: no change, and 5 % more work.

``python -m benchmarks.joins.live``, as root. Three runners measure at once, in control
groups with quotas of a CPU, and one has a busy neighbour. Each has its own host identity and its
own ledger. Without the right to make control groups, the runners differ by ``nice`` alone, and the
first line says so. Prints a line for each change; ends with 1 if more than 5 % of the joins without
a change are red, or fewer than 95 % of the others, beyond two standard errors. ``--results FILE``
gets each join at once, and joins that the file has are not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.gate.run import HERE, MAKEFILE, calibrated, commit, git

PERIOD_US = 10_000
"""Period of a quota; a trial has several of them."""
CGROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu"))
"""Roots of control groups of version 2, and of the CPU controller of version 1."""


class Runner(NamedTuple):
    """One runner: how much of a CPU it gets, and whether a neighbour disturbs it."""

    name: str
    quota: float
    niceness: int
    has_neighbour: bool = False


RUNNERS = (Runner("one", 1.0, 0), Runner("two", 0.6, 5), Runner("three", 0.6, 10, True))


@contextlib.contextmanager
def cgroup_of(runner: Runner) -> Iterator[Path | None]:
    """Yield a control group with the quota of a runner; ``None`` if none can be made."""
    quota = round(runner.quota * PERIOD_US)
    for root in CGROUPS:
        group = root / f"equipoise-join-{os.getpid()}-{runner.name}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            elif (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                continue
            yield group
            return
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
    yield None


def main(words: Sequence[str]) -> int:
    """Run the joins that were asked for, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--joins", type=int, default=200, help="without a change")
    parser.add_argument("--slower", type=int, default=40, help="joins of 5 %% more work")
    parser.add_argument("--milliseconds", type=float, default=120.0, help="of one trial, alone")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of each slice")
    parser.add_argument("--results", type=Path, help="file of joins, appended to")
    asked = parser.parse_args(words)
    is_right = True
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="joins-")))
        groups = [stack.enter_context(cgroup_of(runner)) for runner in RUNNERS]
        how = "quotas of control groups" if all(groups) else "nice alone: no control group"
        print(f"three runners at once, {how}; {asked.budget:g} s a slice", flush=True)
        work = calibrated(folder, asked.milliseconds / 1000)
        for percent, count in ((0.0, asked.joins), (5.0, asked.slower)):
            if count == 0:
                continue
            kept = Kept(asked.results, percent, asked.budget)
            outcomes = joins(folder, work, count, groups, kept)
            red = sum(outcome["red"] for outcome in outcomes)
            share = red / count
            error = 2 * math.sqrt(0.05 * 0.95 / count)
            is_right &= share <= 0.05 + error if percent == 0 else share >= 0.95 - error
            print(
                f"{percent:g} % more work: {red} of {count} joins red, "
                f"{sum(outcome['passes'] for outcome in outcomes)} pass; red slices: "
                f"{sum(outcome['red slices'] for outcome in outcomes)} of {3 * count}; named: "
                f"{dict(Counter(name for outcome in outcomes for name in outcome['named']))}",
                flush=True,
            )
    return 0 if is_right else 1


@dataclass(frozen=True)
class Kept:
    """The joins of one change and budget in a file of results."""

    file: Path | None
    percent: float
    """Planted slowdown."""
    budget: float
    """Seconds of each slice."""

    def outcomes(self) -> list[dict[str, Any]]:
        """Return what came of the joins that the file has."""
        lines = self.file.read_text().splitlines() if self.file and self.file.exists() else []
        rows = map(json.loads, lines)
        return [
            row for row in rows if (row["percent"], row["budget"]) == (self.percent, self.budget)
        ]

    def keep(self, outcome: dict[str, Any]) -> None:
        """Append an outcome to the file."""
        if self.file is not None:
            row = {"percent": self.percent, "budget": self.budget, **outcome}
            with self.file.open("a") as stream:
                stream.write(json.dumps(row) + "\n")


def joins(
    folder: Path, work: int, count: int, groups: Sequence[Path | None], kept: Kept
) -> list[dict[str, Any]]:
    """Make a repository with both revisions, and run the joined gates that are not kept yet."""
    project = folder / f"project {kept.percent:g}"
    project.mkdir()
    git(project, "init", "--quiet", ".")
    shutil.copy(HERE / "spinning.c", project)
    for name, amount in (("first", work), ("second", round(work * (1 + kept.percent / 100)))):
        (project / "Makefile").write_text(f"# {name}\n{MAKEFILE.format(work=amount)}")
        commit(project)
    outcomes = kept.outcomes()[:count]
    for number in range(len(outcomes), count):
        outcome = join(project, folder / f"{kept.percent:g}-{number}", groups, kept.budget)
        kept.keep(outcome)
        outcomes.append(outcome)
        print(f"\r{number + 1}/{count}", end="", file=sys.stderr, flush=True)
    print("\r\x1b[K", end="", file=sys.stderr)
    return outcomes


def join(
    project: Path, folder: Path, groups: Sequence[Path | None], budget: float
) -> dict[str, Any]:
    """Run three slices at once and join them; return what came of it."""
    folder.mkdir()
    slices = [folder / f"{runner.name}.db" for runner in RUNNERS]
    neighbours = [
        started(["sh", "-c", "while :; do :; done"], project, group, runner, {})
        for runner, group in zip(RUNNERS, groups, strict=True)
        if runner.has_neighbour
    ]
    try:
        running = [
            started(
                [
                    *gate("--ledger", folder / f"ledger-{runner.name}.db"),
                    *("--baseline", "HEAD~1", "--candidate", "HEAD", "--build", "make --silent"),
                    *("--budget", f"{budget:g}", "--allow-concurrent", "--host", runner.name),
                    *("--slice", str(file), "--", "./bench"),
                ],
                project,
                group,
                runner,
                {"XDG_STATE_HOME": str(folder.parent / f"state of {runner.name}")},
            )
            for runner, group, file in zip(RUNNERS, groups, slices, strict=True)
        ]
        statuses = [process.wait() for process in running]
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    if any(statuses):
        raise SystemExit(f"a slice ended with {statuses}")
    done = subprocess.run(
        [*gate("--ledger", folder / "joined.db"), "--join", "--json", "-", *map(str, slices)],
        cwd=project,
        env=own_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.returncode)
    (row,) = json.loads(done.stdout)["gate"]["rows"]
    shutil.rmtree(folder)
    outcomes = {host["host"]: host["outcome"] for host in row["hosts"]}
    outcomes["the mean"] = row["mean_outcome"]
    low = 1 + 0.02
    return {
        "red": done.returncode,
        "passes": row["outcome"] == "passes",
        "named": [name for name, outcome in outcomes.items() if outcome == "slower"],
        "red slices": sum((host["equivalence_ci"][0] or 0) > low for host in row["hosts"]),
    }


def gate(*words: str | Path) -> list[str]:
    """Return the beginning of a command line of the gate."""
    return [sys.executable, "-m", "equipoise.cli", "gate", *map(str, words)]


def started(
    words: Sequence[str],
    folder: Path,
    group: Path | None,
    runner: Runner,
    variables: dict[str, str],
) -> subprocess.Popen[bytes]:
    """Start a command in the control group of a runner, or else with its niceness."""
    line = f'exec nice -n {runner.niceness} "$@"'
    if group is not None:
        line = f"""echo $$ > '{group}/cgroup.procs'; exec "$@\""""
    return subprocess.Popen(
        ["sh", "-c", line, "sh", *words],
        cwd=folder,
        env={**own_environment(), **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def own_environment() -> dict[str, str]:
    """Return the environment without the file for a job's summary."""
    return {key: value for key, value in os.environ.items() if key != "GITHUB_STEP_SUMMARY"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
