"""Run one process of a benchmark tool and report the mean of each benchmark.

::

    python -m equipoise.helpers.benchmark_tool go -- go test -bench .

The mean of each benchmark goes to the file ``EQUIPOISE_METRICS`` as ``NAME time_s``, one value for
each process. A process of Google Benchmark runs only one benchmark. It reports ``time_s``,
``cpu_time_s`` and the number of ``iterations``. pytest reports through a plugin
(`equipoise.helpers.pytest_plugin`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from equipoise.helpers import criterion_runner
from equipoise.helpers.equipoise_metrics import METRICS_VARIABLE, report
from equipoise.interop.formats import criterion, go_bench, google_benchmark, libtest
from equipoise.interop.reading import TIME, Process, read_within_bounds
from equipoise.model.errors import EquipoiseError

_TAIL_BYTES = 4096
"""Number of bytes from the end of a tool's output in an error message."""
_LATEST_RUN = "new"
"""Name of criterion for the results of the latest run."""
_GOOGLE_BENCHMARK = "google-benchmark"


def main(arguments: Sequence[str]) -> None:
    """Run the command line.

    Raise `SystemExit` with one line if the tool failed, or its output cannot be read.
    """
    tools = (*_READERS, _GOOGLE_BENCHMARK)
    if len(arguments) < 3 or arguments[0] not in tools or arguments[1] != "--":
        raise SystemExit(f"usage: benchmark_tool {'|'.join(tools)} -- COMMAND")
    tool, command = arguments[0], arguments[2:]
    if tool == "cargo":
        _remove_earlier_results()
        command = _with_short_runs(command)
    with tempfile.TemporaryDirectory() as temporary_folder:
        output = Path(temporary_folder, "output")
        try:
            if tool == _GOOGLE_BENCHMARK:
                _run_google_benchmark(command, output)
                return
            _run(command, output)
            for process in _READERS[tool](output):
                report(f"{process.benchmark} {TIME}", process.values[TIME], unit="s")
        except EquipoiseError as error:
            raise SystemExit(error.what) from None


def _with_short_runs(command: Sequence[str]) -> Sequence[str]:
    """Return the command with options for `cargo bench` to run criterion's programs briefly."""
    if os.path.basename(command[0]) != "cargo" or "bench" not in command:
        return command
    options_start = command.index("bench") + 1
    options = criterion_runner.cargo_options()
    return (*command[:options_start], *options, *command[options_start:])


def _run(command: Sequence[str], output: Path) -> None:
    try:
        with output.open("wb") as file:
            status = subprocess.run(command, stdout=file, check=False).returncode
    except OSError as error:
        raise SystemExit(f"cannot start {command[0]}: {error.strerror}") from None
    if status != 0:
        # These tools write their errors to standard output.
        tail = output.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace")
        raise SystemExit(f"{tail}\n{command[0]} ended with status {status}")


def _run_google_benchmark(command: Sequence[str], output: Path) -> None:
    # Results go to a file, because the program may print, too.
    results = output.with_name("results.json")
    _run((*command, f"--benchmark_out={results}", "--benchmark_out_format=json"), output)
    if not results.exists():
        raise SystemExit(f"{command[0]} wrote no results: it does not use Google Benchmark")
    reading = google_benchmark.FORMAT.read(read_within_bounds("the results", results))
    if reading.notes or not reading.processes:
        raise SystemExit("; ".join(reading.notes) or "the program measured no benchmark")
    values = reading.processes[0].values
    report(TIME, values[TIME], unit="s")
    report("cpu_time_s", values["cpu_s"], unit="s")
    report("iterations", values["iterations"])


def _go_processes(output: Path) -> Iterator[Process]:
    if not output.stat().st_size:
        return
    for process in go_bench.FORMAT.read(read_within_bounds("the output of go", output)).processes:
        package = process.levels.get(go_bench.PACKAGE)
        name = process.benchmark if package is None else f"{package}.{process.benchmark}"
        yield Process(name, process.values)


def _cargo_processes(output: Path) -> Iterator[Process]:
    if output.stat().st_size:
        yield from libtest.FORMAT.read(read_within_bounds("the output of cargo", output)).processes
    results = _criterion_folder()
    if any(results.rglob("sample.json")):
        for process in criterion.FORMAT.read(read_within_bounds(str(results), results)).processes:
            if process.levels.get(criterion.SAVED_RUN) == _LATEST_RUN:
                yield process


_READERS: dict[str, Callable[[Path], Iterator[Process]]] = {
    "cargo": _cargo_processes,
    "go": _go_processes,
    "pytest": lambda output: iter(()),
}
"""Functions that read the results of a run, by tool; pytest reports through its plugin."""


def _criterion_folder() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", "target"), "criterion")


def _remove_earlier_results() -> None:
    # A gate sets both variables. Without them, the folder may contain results of the user.
    if os.environ.get(METRICS_VARIABLE) and os.environ.get("CARGO_TARGET_DIR"):
        shutil.rmtree(_criterion_folder(), ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
