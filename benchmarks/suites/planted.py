"""How often a gate of each benchmark tool finds 5 %, and how often it is red without a change.

::

    cp benchmarks/suites/planted.jsonl FILE                       # go on from the results so far
    python -m benchmarks.suites.planted --results FILE            # all tools
    python -m benchmarks.suites.planted --results FILE go jmh     # two
    python -m benchmarks.suites.planted --results FILE --at-once 2

Each example of docs/examples/suites is gated in a repository of three commits: the example, one
with another comment, and one with its ``slower.patch``, which plants 5 % more work. Each gate is
appended to the file at once, and gates that the file has are not run again. Prints one row for each
tool; ends with 1 if a tool found fewer slowdowns than `MIN_FOUND`, or had more than `MAX_RED`.

``--at-once 2`` measures two tools at once, each on a CPU of its own. Each is a noisy neighbour of
the other, so a rate of errors is tested harder, and the seconds are an upper bound.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks.environments import python_with
from benchmarks.suites.others import GATE_STATUSES, GIT

EXAMPLES = Path(__file__).parents[2] / "docs/examples/suites"
TOOLS_FOLDER = Path(
    os.environ.get("EQUIPOISE_TEST_TOOLS", Path.home() / ".cache/equipoise-test-tools")
)
"""Where `scripts/test_tools.sh` puts the sources of Catch2 and nanobench, and a newer Node."""
PLANTED, UNCHANGED = 10, 40
"""Gates of each kind."""
UNCHANGED_BUDGET = 60.0
"""Seconds of a gate without a change."""
MIN_FOUND, MAX_RED = 10, 6
"""Of the gates with a slowdown, and of those without: at alpha 5 %, 40 gates have more than 6 red
ones in 0.3 % of such tables."""


@dataclass(frozen=True)
class Example:
    """A tool, its example, and what its maintainer would type."""

    tool: str
    folder: str
    options: tuple[str, ...] = ()
    """Arguments of `equipoise gate` besides the baseline and the budget."""
    packages: tuple[str, ...] = ()
    """Packages of PyPI that the suite needs."""
    variables: Mapping[str, str] = field(default_factory=dict)
    budget: float = 600.0
    """Seconds of a gate with a slowdown. It ends when it is decided; a tool whose processes take
    seconds, or differ by per cents, needs minutes for 5 %."""


def _newer_node() -> dict[str, str]:
    for programs in TOOLS_FOLDER.glob("node-linux-*/node_modules/node-linux-*/bin"):
        return {"PATH": f"{programs}:{os.environ['PATH']}"}
    return {}


EXAMPLES_OF_TOOLS = (
    Example(
        "asv 0.6.6",
        "asv",
        ("--kind", "asv", "--", "python", "--bench", "TimeSuite.time_range"),
        ("asv==0.6.6",),
    ),
    Example(
        "criterion 0.8",
        "cargo",
        ("--kind", "cargo", "--", "cargo", "bench", "-p", "with-criterion"),
    ),
    Example(
        "divan 0.1",
        "cargo",
        ("--kind", "cargo", "--", "cargo", "bench", "-p", "with-divan", "--", "16"),
    ),
    Example("Catch2 2", "catch2"),
    Example("Go", "go"),
    Example("Google Benchmark", "google-benchmark"),
    Example(
        "JMH 1.37",
        "jmh",
        (
            *("--kind", "jmh", "--", "java", "-jar", "target/benchmarks.jar"),
            *("measureRight_1", "-p", "size=1000"),
        ),
    ),
    Example(
        "nanobench 4",
        "nanobench",
        variables={"CPLUS_INCLUDE_PATH": str(TOOLS_FOLDER / "nanobench")},
    ),
    Example(
        "pytest-benchmark 5",
        "pytest-benchmark",
        ("--kind", "pytest", "--", "python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        ("pytest==9.2.0", "pytest-benchmark==5.3.1"),
    ),
    Example(
        "pytest-codspeed 5",
        "pytest-codspeed",
        ("--kind", "pytest", "--", "python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        ("pytest==9.2.0", "pytest-codspeed==5.0.4"),
    ),
    Example(
        "tinybench 6",
        "tinybench",
        ("--kind", "tinybench", "--", "node", "bench.js"),
        variables=_newer_node(),
    ),
    Example("vitest 4", "vitest", variables=_newer_node()),
)


@dataclass(frozen=True)
class Gate:
    """One gate, as a line of the file of results."""

    tool: str
    planted: bool
    status: int
    seconds: float
    blocks: int
    outcomes: dict[str, str]
    budget: float
    load: float
    """Average number of running processes of the last minute, before the gate."""
    error: str = ""
    at_once: int = 1
    """Number of tools that were measured at once."""


def repository_of(example: Example, folder: Path) -> None:
    """Make the repository with the commits ``plain``, ``comment`` and ``slower``."""
    subprocess.run([*GIT, "init", "--quiet", folder], check=True)
    shutil.copytree(EXAMPLES / example.folder, folder, dirs_exist_ok=True)
    patch = folder.parent / "slower.patch"
    shutil.move(folder / patch.name, patch)

    def commit(name: str) -> None:
        subprocess.run([*GIT, "add", "--all"], cwd=folder, check=True)
        subprocess.run([*GIT, "commit", "--quiet", "-m", name], cwd=folder, check=True)
        subprocess.run([*GIT, "tag", name], cwd=folder, check=True)

    commit("plain")
    (folder / "NOTES").write_text("Nothing that is built or run.\n")
    commit("comment")
    subprocess.run([*GIT, "apply", patch], cwd=folder, check=True)
    commit("slower")


def gate(
    example: Example,
    folder: Path,
    *,
    planted: bool,
    budget: float,
    cpu: tuple[str, ...],
    at_once: int,
) -> Gate:
    """Gate the last commit against the second, or the second against the first.

    ``cpu`` are words before the command that choose its CPU.
    """
    baseline, candidate = ("comment", "slower") if planted else ("plain", "comment")
    result = folder / ".git/gate.json"
    result.unlink(missing_ok=True)
    variables = {**os.environ, **example.variables}
    if example.packages:
        programs = python_with(*example.packages).parent
        variables["PATH"] = f"{programs}:{variables['PATH']}"
    load, _, _ = os.getloadavg()
    began = time.perf_counter()
    done = subprocess.run(
        [
            *cpu,
            *("equipoise", "gate", "--baseline", baseline, "--candidate", candidate),
            *("--budget", f"{budget:g}", "--json", result),
            *(("--allow-concurrent",) if at_once > 1 else ()),
            *example.options,
        ],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    document: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {}
    rows = (document.get("gate") or {}).get("rows", [])
    return Gate(
        tool=example.tool,
        planted=planted,
        status=done.returncode,
        seconds=seconds,
        blocks=(document.get("run") or {}).get("blocks") or 0,
        outcomes={row["benchmark"]: row["outcome"] for row in rows},
        budget=budget,
        load=load,
        error="" if done.returncode in GATE_STATUSES else done.stderr.strip()[-300:],
        at_once=at_once,
    )


def gates_of(path: Path) -> list[Gate]:
    """Return the gates in a file of results."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Gate(**json.loads(line)) for line in lines]


def measure(example: Example, asked: argparse.Namespace, cpu: tuple[str, ...]) -> None:
    """Run the gates of a tool that the file lacks."""
    path: Path = asked.results
    counts = {
        planted: sum(one.tool == example.tool and one.planted == planted for one in gates_of(path))
        for planted in (True, False)
    }
    wanted = [True] * (asked.planted - counts[True]) + [False] * (asked.unchanged - counts[False])
    if not wanted:
        return
    with tempfile.TemporaryDirectory(prefix="planted-") as parent:
        folder = Path(parent, "project")
        repository_of(example, folder)
        for planted in wanted:
            budget = example.budget if planted else UNCHANGED_BUDGET
            answer = gate(
                example,
                folder,
                planted=planted,
                budget=budget,
                cpu=cpu,
                at_once=asked.at_once,
            )
            print(f"{answer}", file=sys.stderr, flush=True)
            if answer.error:
                return
            with path.open("a") as stream:
                stream.write(json.dumps(answer.__dict__) + "\n")


def row_of(gates: Sequence[Gate]) -> str:
    """Return the columns of the gates of one kind: red ones, undecided ones, blocks, seconds."""
    if not gates:
        return f"{'-':>8} {'-':>10} {'-':>7} {'-':>8}"
    red = sum(one.status == 1 for one in gates)
    undecided = sum("undecided" in one.outcomes.values() for one in gates)
    blocks = statistics.median(one.blocks for one in gates)
    seconds = statistics.median(one.seconds for one in gates)
    return f"{f'{red}/{len(gates)}':>8} {undecided:>10} {blocks:>7.0f} {seconds:>8.0f}"


def main() -> int:
    """Run the gates that were asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", nargs="*", help="folders of examples; all by default")
    parser.add_argument("--results", type=Path, required=True, help="file of gates, appended to")
    parser.add_argument("--planted", type=int, default=PLANTED, help="gates with 5 %% more work")
    parser.add_argument("--unchanged", type=int, default=UNCHANGED, help="gates without a change")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="tools at once")
    asked = parser.parse_args()
    chosen = [
        example
        for example in EXAMPLES_OF_TOOLS
        if not asked.tools or {example.folder, example.tool} & {*asked.tools}
    ]
    free_cpus: SimpleQueue[tuple[str, ...]] = SimpleQueue()
    cpus = itertools.cycle(sorted(os.sched_getaffinity(0)))
    for cpu in itertools.islice(cpus, asked.at_once):
        # One tool at a time may use all CPUs.
        free_cpus.put(() if asked.at_once == 1 else ("taskset", "--cpu-list", str(cpu)))

    def measure_on_a_free_cpu(example: Example) -> None:
        cpu = free_cpus.get()
        try:
            measure(example, asked, cpu)
        finally:
            free_cpus.put(cpu)

    with ThreadPoolExecutor(asked.at_once) as executor:
        list(executor.map(measure_on_a_free_cpu, chosen))
    gates = gates_of(asked.results)
    columns = f"{'red':>8} {'undecided':>10} {'blocks':>7} {'seconds':>8}"
    print(f"{'':<20} {'5 % more work':^36} {'no change':^36}")
    print(f"{'tool':<20} {columns} {columns}")
    failures = 0
    for example in chosen:
        of_tool = [one for one in gates if one.tool == example.tool]
        planted = [one for one in of_tool if one.planted]
        unchanged = [one for one in of_tool if not one.planted]
        print(f"{example.tool:<20} {row_of(planted)} {row_of(unchanged)}")
        found, red = (sum(one.status == 1 for one in some) for some in (planted, unchanged))
        failures += found < min(MIN_FOUND, asked.planted) or red > MAX_RED
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
