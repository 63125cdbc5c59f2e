"""Bad input of each benchmark tool gets one line, and the other benchmarks go on."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.suites import trial
from equipoise.suites.running import TIMEOUT_VARIABLE, StoppedAt
from packages.equipoise.tests.suites.test_finding import written

HOSTILE = "<b>&|`c` @all"
FAILED = 1
READ_HINT = "run the command by hand: did it end early, or did a benchmark write to this file?"

FAKE = """#!/bin/sh
for word; do case $word in
    --benchmark_out=*|--results=*|--outputFile.json=*) out=${word#*=} ;;
esac; last=$word; done
case $0 in
    */catch2|*/jmh|*/vitest) out=${out-$last} ;;
    */tinybench) out=$EQUIPOISE_TINYBENCH ;;
    */cargo|*/go|*/nanobench) out=/dev/stdout ;;
esac
here=$(dirname "$0")
test ! -e "$here/results" || cat "$here/results" > "$out"
test ! -e "$here/running" || cat "$here/running" > "$EQUIPOISE_TINYBENCH_RUNNING"
test -e "$here/status" || { touch "$here/hangs"; exec sleep 600; }
exit "$(cat "$here/status")"
"""
"""A program in place of each tool, which writes its results where the tool does."""


def catch2(*elements: str) -> str:
    case = f'<TestCase name="t">{"".join(elements)}</TestCase>' if elements else ""
    return f'<Catch2TestRun name="t" catch2-version="3.7.1">{case}</Catch2TestRun>'


def of_catch2(name: str) -> str:
    escaped = name.replace("&", "&amp;").replace("<", "&lt;")
    return f'<BenchmarkResults name="{escaped}"><mean value="5"/></BenchmarkResults>'


FAILED_IN_CATCH2 = '<BenchmarkResults name="bad"><failed message="no&#10;data"/></BenchmarkResults>'


def go(*names: str) -> str:
    return "pkg: m\n" + "".join(f"Benchmark{name}-2   100   10.0 ns/op\n" for name in names)


def google(**entry: object) -> str:
    entry = {"name": "S", "real_time": 1.0, "cpu_time": 1.0, "iterations": 2, **entry}
    return json.dumps({"context": {"library_version": "1.9.1"}, "benchmarks": [entry]})


def jmh(*names: str, unit: str = "us/op") -> str:
    metric = {"scoreUnit": unit, "rawData": [[1.0]]}
    fields = {"jmhVersion": "1.37", "mode": "avgt", "params": {}, "primaryMetric": metric}
    return json.dumps([{"benchmark": name, **fields} for name in names])


def libtest(*names: str) -> str:
    return "".join(f"test {name} ... bench:   15 ns/iter (+/- 2)\n" for name in names)


HEADER = """
|               ns/op |                op/s |    err% |     total | benchmark
|--------------------:|--------------------:|--------:|----------:|:----------
"""


def nanobench(*names: str) -> str:
    row = "|                7.52 |      132,948,239.79 |    1.1% |      0.00 | `{}`\n"
    return HEADER + "".join(map(row.format, names))


def tinybench(task: str, **fields: object) -> str:
    return json.dumps({"version": "6.2.5", "bench": None, "task": task, **fields}) + "\n"


def vitest(*benchmarks: tuple[str, float | None]) -> str:
    found = [{"name": name, **({"mean": mean} if mean else {})} for name, mean in benchmarks]
    return json.dumps({"files": [{"groups": [{"fullName": "s", "benchmarks": found}]}]})


JMH_FAILURE = """# JMH version: 1.37
# Benchmark: demo.bad
# Warmup Iteration   1: <failure>

java.lang.IllegalStateException: no <b>data
	at demo.bad(Odd.java:13)
"""
PROGRAMS = f"""
equipoise: program a/good/good-0
{libtest("x")}
equipoise: program a/bad/bad-0
test b ... """
BY_HAND = "run the command by hand to see why"
Row = tuple[str, str | None, str | list[str]]
"""Tool, results, and a part of the only line if all ends, or else the benchmarks with a time and
those with a reason. ``{program}`` is the path of the tool."""
NO_BENCHMARK: list[Row] = [
    ("asv", None, "asv: {program} wrote no results: it is not a Python with asv"),
    ("catch2", catch2(), "Catch2 3.7.1: {program} measured no benchmark"),
    ("catch2", None, "catch2: the program wrote no report: it does not use Catch2; ch"),
    ("google-benchmark", None, "wrote no results: it does not use Google Benchmark"),
    ("google-benchmark", google(skipped=True, skip_message="no AVX"), "no AVX"),
    ("jmh", None, "jmh: {program} wrote no results: it does not run JMH"),
    ("jmh", "[]", "JMH measured no benchmark"),
    ("nanobench", "words\n", "printed no table of nanobench: let it print to standard"),
    ("tinybench", None, "ran no benchmark of tinybench 2 to 6: install one of these"),
    ("vitest", vitest(), "vitest 4.1.12: it measured no benchmark: check the names"),
    ("vitest", None, "wrote no results of vitest 4.1.12: is it vitest bench?"),
]
CUT_OFF: list[Row] = [
    ("asv", '{"type": "time", "val', READ_HINT),
    ("cargo", libtest("a")[:-20], "cargo: the output of cargo: line 1: a benchmark"),
    ("catch2", catch2(of_catch2("b"))[:-9], "the report of Catch2 is cut off, or is"),
    ("go", "BenchmarkA-2   100   10.0\n", "go: the output of go: line 1 is truncated"),
    ("google-benchmark", google()[:-9], "not a result of Google Benchmark"),
    ("jmh", jmh("a")[:-9], "jmh: the results of JMH: this is not a result of JMH"),
    ("nanobench", nanobench("a")[:-6], "line 4 is cut off"),
    ("tinybench", tinybench("a", median_ms=1)[:-5], "line 1 cannot be read"),
    ("vitest", vitest(("a", 1.0))[:-9], "the results of vitest 4.1.12: this is not a"),
]
PRINTS: list[Row] = [
    ("asv", "printed" + '{"type": "time", "value": 1}', READ_HINT),
    ("cargo", "printed\n" + libtest("a"), ["a"]),
    ("catch2", "printed" + catch2(of_catch2("b")), READ_HINT),
    ("go", go("A") + "printed\n" + go("B"), ["m.BenchmarkA-2", "m.BenchmarkB-2"]),
    ("google-benchmark", "printed" + google(), READ_HINT),
    ("jmh", "printed" + jmh("a"), READ_HINT),
    ("nanobench", "printed | here |\n" + nanobench("a"), ["a"]),
    ("tinybench", "printed\n" + tinybench("a", median_ms=1), READ_HINT),
    ("vitest", "printed" + vitest(("a", 1.0)), READ_HINT),
]
NAMES: list[Row] = [
    ("cargo", libtest(HOSTILE, "\x1b[31m"), [HOSTILE, "\x1b[31m"]),
    ("catch2", catch2(of_catch2(HOSTILE)), [f"t/{HOSTILE}"]),
    ("go", go("<b>&|`c`@all"), ["m.Benchmark<b>&|`c`@all-2"]),
    ("nanobench", nanobench("<b>&|\n``c`` \x1b[31m"), ["<b>&|\n`c` \x1b[31m"]),
    (
        "tinybench",
        tinybench(f"{HOSTILE}\n\x1b[31m", median_ms=1),
        [f"{HOSTILE}\n\x1b[31m"],
    ),
    ("vitest", vitest((f"{HOSTILE}\n\x1b[31m", 1.0)), [f"s > {HOSTILE}\n\x1b[31m"]),
]
EQUAL_NAMES: list[Row] = [
    ("cargo", libtest("a", "a"), ["a", "a (2)"]),
    ("catch2", catch2(of_catch2("b"), of_catch2("b")), ["t/b", "t/b (2)"]),
    ("nanobench", nanobench("a", "a"), ["a", "a (2)"]),
    ("tinybench", 2 * tinybench("a", median_ms=1), ["a", "a (2)"]),
    ("vitest", vitest(("a", 1.0), ("a", 1.0)), ["s > a", "s > a (2)"]),
]
FAILURES: list[Row] = [
    ("asv", '{"error": "asv_runner 0.3: bad"}', "asv_runner 0.3: bad"),
    ("cargo", PROGRAMS, ["x", f"a/bad: cargo: the program failed at b: {BY_HAND}"]),
    ("catch2", catch2(of_catch2("b"), FAILED_IN_CATCH2), ["t/b", "t/bad: Catch2 3.7.1: no data"]),
    (
        "go",
        f"{go('A')}    a_test.go:4: no data\n--- FAIL: BenchmarkB\nFAIL\tsub [build failed]\n",
        ["m.BenchmarkA-2", "m.BenchmarkB-2: go: it failed: no data", "sub: go: build failed"],
    ),
    (
        "google-benchmark",
        google(error_occurred=True, error_message="no data"),
        "Google Benchmark 1.9.1: S reported an error: no data",
    ),
    ("jmh", jmh("a", "b"), "JMH 1.37 measured 2 benchmarks in one process: a, b"),
    ("jmh", jmh("a", unit="cows/op"), "which is neither a time nor a throughput"),
    (
        "nanobench",
        nanobench("a") + "|    - |   - |   - |   - | :boom: `b` (overflow.)\n",
        ["a", "b: nanobench: overflow."],
    ),
    (
        "tinybench",
        tinybench("a", median_ms=1) + tinybench("b", failure="no\ndata"),
        ["a", "b: tinybench 6.2.5: no data"],
    ),
    ("vitest", vitest(("a", 1.0), ("b", None)), ["s > a", "s > b: vitest 4.1.12: it has no time"]),
]
PANICS: list[Row] = [
    ("go", f"{go('A')}BenchmarkB\npanic: bad\n", ["m.BenchmarkB: go: panic: bad"]),
]
HANGS: list[Row] = [
    ("cargo", "Benchmarking sum: Warming up\n", ["sum: cargo: it did not end within 9 s"]),
    ("cargo", libtest("a") + "test b ... ", ["b: cargo: it did not end within 9 s"]),
    ("catch2", catch2(of_catch2("b"))[:-40], ["t: catch2: it did not end within 9 s"]),
    ("go", go("A") + "BenchmarkB\n", ["m.BenchmarkB: go: it did not end within 9 s"]),
    ("nanobench", nanobench("a"), "nanobench: it did not end within 9 s"),
    ("tinybench", "", ["now: tinybench: it did not end within 9 s"]),
    ("vitest", "", ["now: vitest: it did not end within 9 s"]),
]
KINDS = {
    "no benchmark": NO_BENCHMARK,
    "cut off": CUT_OFF,
    "prints": PRINTS,
    "names": NAMES,
    "equal names": EQUAL_NAMES,
    "failure": FAILURES,
    "panic": PANICS,
    "hang": HANGS,
}
TOOLS_WITH_MANY: dict[str, Callable[[], str]] = {
    "cargo": lambda: libtest(*map(str, range(10_000))),
    "catch2": lambda: catch2(*map(of_catch2, map(str, range(10_000)))),
    "go": lambda: go(*map(str, range(10_000))),
    "nanobench": lambda: nanobench(*map(str, range(10_000))),
    "tinybench": lambda: "".join(tinybench(str(n), median_ms=1) for n in range(10_000)),
    "vitest": lambda: vitest(*((str(number), 1.0) for number in range(10_000))),
}


WAIT = subprocess.Popen[bytes].wait


class Process:
    """A process that reads the results of a fake tool, in this interpreter."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = patch
        self.error = ""
        self.metrics: list[str] = []

    def run(self, tool: str, results: str | None, *, status: int | None = 0) -> int:
        """Run a tool, which hangs without a status; return the exit status of its reader."""
        manifest = '{"version": "4.1.12"}'
        files = {tool: FAKE, "node_modules/vitest/package.json": manifest}
        files |= {} if results is None else {"results": results}
        files |= {"running": "now"} if status is None and tool in ("tinybench", "vitest") else {}
        files |= {} if status is None else {"status": str(status)}
        program = written(self._folder, files) / tool
        program.chmod(0o755)
        metrics = self._folder / "metrics"
        self._patch.chdir(self._folder)
        self._patch.setenv("EQUIPOISE_METRICS", str(metrics))
        if status is None:
            self._patch.setenv(TIMEOUT_VARIABLE, "9")
            self._patch.setattr(subprocess.Popen, "wait", lambda *given: self._wait(*given))
        code: object = 0
        try:
            trial.main([tool, "--", str(program), *(["bench", "-test."] if tool == "go" else [])])
        except SystemExit as error:
            code = error.code
        if isinstance(code, str):
            self.error, code = code.splitlines()[-1], FAILED
        lines = map(json.loads, metrics.read_text().splitlines() if metrics.exists() else ())
        self.metrics = [
            line["metric"].removesuffix(" time_s")
            + (f": {line['unknown_because']}" if line["value"] is None else "")
            for line in lines
        ]
        assert isinstance(code, int)
        return code

    def _wait(self, tool: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        """Wait for a tool; end the timeout once the tool hangs."""
        while timeout is not None and not (self._folder / "hangs").exists():
            time.sleep(0.005)
        if timeout is not None:
            raise subprocess.TimeoutExpired("tool", timeout)
        return WAIT(tool)


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        pytest.param(kind, row, id=f"{kind}: {row[0]} {number}")
        for kind, rows in KINDS.items()
        for number, row in enumerate(rows)
    ],
)
def test_bad_input_gets_one_line_and_the_other_benchmarks_go_on(
    kind: str, row: Row, process: Process, tmp_path: Path
) -> None:
    tool, results, expected = row
    status = None if kind == "hang" else int(results is PROGRAMS)
    exit_status = process.run(tool, results, status=status)
    if isinstance(expected, str):
        assert exit_status == FAILED
        assert expected.format(program=tmp_path / tool) in process.error
        assert process.metrics == []
    else:
        is_stopped = kind in ("panic", "hang")
        assert exit_status == (StoppedAt.exit_status if is_stopped else 0)
        assert process.metrics == expected


@pytest.mark.parametrize("tool", TOOLS_WITH_MANY)
def test_ten_thousand_benchmarks_are_read(tool: str, process: Process) -> None:
    assert process.run(tool, TOOLS_WITH_MANY[tool]()) == 0
    assert len(process.metrics) == 10_000
