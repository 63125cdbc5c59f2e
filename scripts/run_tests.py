"""Everything that `make test` runs, to its end, and one line that adds it up.

With ``--quick``, what `make check` runs: lint, types and the tests of `FAST_TESTS`.

Lint is one check, each Rust and each Python test is one. A part that fails does not stop
the next one: whoever reads the log sees all that is wrong.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS_THAT_COMPUTE = (
    "tests/benchmarks",
    "tests/fuzz",
    "tests/packaging",
    "packages/matching/tests",
    "packages/studies/tests/builtin",
    "packages/studies/tests/primitives/test_charts.py",
    "packages/studies/tests/primitives/test_report.py",
    "packages/studies/tests/test_layers.py",
    "packages/studies/tests/test_rank_correlation.py",
) + tuple(
    f"packages/equipoise/tests/{room}"
    for room in (
        "design", "figures", "interop", "ledger", "report", "screens", "shared", "stats", "studies",
        "kinds/bisect/test_branches.py", "kinds/bisect/test_figures.py",
        "kinds/bisect/test_layout.py", "kinds/bisect/test_report.py",
        "kinds/bisect/test_search.py", "kinds/bisect/test_shared_blocks.py",
        "kinds/bisect/test_suite_report.py", "kinds/fleet/test_figures.py",
        "kinds/fleet/test_report.py",
        "kinds/gate/test_forecast.py", "kinds/gate/test_power.py", "kinds/gate/test_report.py",
        "kinds/gate/test_verdict.py", "kinds/history/test_schedule.py",
        "kinds/history/test_figures.py", "kinds/history/test_report.py",
        "kinds/history/test_series_report.py",
        "kinds/history/test_statistics.py", "kinds/imported/test_assembly.py",
    )
)  # fmt: skip
"""They run side by side. The others run campaigns, of which a host has one at a time: they run in
network namespaces of their own, or one after the other."""

FAST_TESTS = (
    "tests/test_import_cycles.py",
    "tests/test_words.py",
    "packages/matching/tests/test_layers.py",
    "packages/studies/tests/test_layers.py",
    *(
        f"packages/equipoise/tests/{room}"
        for room in (
            "analysis", "design", "files", "ledger", "report/test_json_document.py",
            "report/test_markdown.py", "shared", "why/causes", "why/differences", "test_api.py",
            "test_layers.py", "cli/test_bad_input.py",
        )
    ),
)  # fmt: skip

IN_NAMESPACE = str(ROOT / "scripts/python_in_namespace.sh")
"""Runs Python where campaigns of others do not hold the measurement lock; fails without root."""

CARGO_RESULT = re.compile(r"^test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored", re.M)


@dataclass(frozen=True, slots=True)
class Count:
    """How one part ended; ``skipped`` names each test with what it misses."""

    passed: int
    failed: int
    skipped: tuple[str, ...] = ()


def lint() -> Count:
    """Types, style and formatting of both languages, as `make lint`."""
    # Types of Python beside those of Rust, each with its own output.
    done = subprocess.run(
        ["make", "--no-print-directory", "--keep-going", "--jobs=2", "--output-sync", "lint"],
        cwd=ROOT,
        check=False,
    )
    return Count(1, 0) if done.returncode == 0 else Count(0, 1)


def rust() -> Count:
    """The tests of the crates."""
    command = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            sys.stdout.write(line)
            lines.append(line)
    results = [tuple(map(int, found)) for found in CARGO_RESULT.findall("".join(lines))]
    failed = sum(result[1] for result in results)
    if process.returncode != 0:
        # A crate that does not compile has no result line, and is a failure all the same.
        failed = max(failed, 1)
    ignored = sum(result[2] for result in results)
    return Count(
        sum(result[0] for result in results),
        failed,
        tuple("a Rust test (ignored, see above)" for _ in range(ignored)),
    )


def fast() -> Count:
    """Tests of the rooms that neither start campaigns nor simulate."""
    return python(["--numprocesses=2", "--dist=loadfile", "--quiet", *FAST_TESTS])


def computing() -> Count:
    """Tests that may run side by side, those of a file in one process."""
    return python(
        ["--numprocesses=logical", "--maxprocesses=4", "--dist=loadfile", *TESTS_THAT_COMPUTE],
        # Threads of one would take the processors of the others.
        OPENBLAS_NUM_THREADS="1",
    )


def running() -> Count:
    """All other tests, three files at a time where each can have a network namespace.

    They wait half of the time, for programs that sleep: three keep two processors busy.
    """
    # pytest does not ignore a folder that it was told to collect.
    others = [folder for folder in test_folders() if folder not in TESTS_THAT_COMPUTE]
    others += [f"--ignore={folder}" for folder in TESTS_THAT_COMPUTE]
    # In a namespace no registry answers.
    subprocess.run([sys.executable, "-m", "tests.crates"], cwd=ROOT, check=True)
    apart = subprocess.run([IN_NAMESPACE, "-c", ""], capture_output=True, check=False)
    if apart.returncode == 0:
        return python([*others, "--dist=loadfile", f"--tx=3*popen//python={IN_NAMESPACE}"])
    return python(others)


def test_folders() -> list[str]:
    """The folders in which pytest looks for tests."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    folders: list[str] = settings["ini_options"]["testpaths"]
    return folders


def python(arguments: list[str], **variables: str) -> Count:
    """Tests, with these variables; conftest.py writes how they ended."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder, "summary.json")
        environment = os.environ | variables | {"EQUIPOISE_TEST_SUMMARY": str(summary)}
        # The slowest tests are named: the whole has 25 minutes.
        command = [sys.executable, "-m", "pytest", "--durations=20", "--durations-min=10"]
        # conftest.py orders the files. Otherwise those with the fewest tests run last, and these
        # are the longest.
        command.append("--no-loadscope-reorder")
        done = subprocess.run([*command, *arguments], cwd=ROOT, env=environment, check=False)
        if not summary.exists():
            return Count(0, 1)
        told = json.loads(summary.read_text())
    failed = max(told["failed"], 1 if done.returncode != 0 else 0)
    return Count(told["passed"], failed, tuple(told["skipped"]))


PARTS: tuple[tuple[str, Callable[[], Count]], ...] = (
    ("lint", lint),
    ("cargo test", rust),
    ("pytest, side by side", computing),
    ("pytest, campaigns", running),
)


QUICK_PARTS: tuple[tuple[str, Callable[[], Count]], ...] = (("lint", lint), ("pytest", fast))


def compile_sources() -> None:
    """Write the bytecode of our packages.

    Where `PYTHONDONTWRITEBYTECODE` is set, each of the processes that tests start would compile the
    modules again.
    """
    sources = map(str, sorted(ROOT.glob("packages/*/src")))
    subprocess.run([sys.executable, "-m", "compileall", "-q", *sources], cwd=ROOT, check=True)


def main(arguments: Sequence[str]) -> int:
    """Run every part."""
    compile_sources()
    counts = []
    for name, part in QUICK_PARTS if "--quick" in arguments else PARTS:
        print(f"== {name}", flush=True)
        counts.append(part())
    passed = sum(count.passed for count in counts)
    failed = sum(count.failed for count in counts)
    skipped = [test for count in counts for test in count.skipped]
    which = "; ".join(skipped) if skipped else "no live test misses anything"
    sys.stderr.flush()
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped: {which}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
