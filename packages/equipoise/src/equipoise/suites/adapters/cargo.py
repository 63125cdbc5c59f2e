"""Rust: ``cargo bench`` with criterion, divan, libtest or bencher, also in one workspace.

CodSpeed's compatibility crates behave as the originals if ``cargo codspeed`` does not build them.

Cargo runs each program through `cargo_runner`, which announces the program and lets criterion run
briefly. A benchmark of divan takes at most 0.1 s, by ``DIVAN_MAX_TIME``. libtest and bencher have
no option for a short run. If two programs have benchmarks of one name, their names begin with the
package and the program: ``parser/speed: sum``.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from equipoise.helpers import cargo_runner
from equipoise.helpers.equipoise_metrics import METRICS_VARIABLE
from equipoise.interop.formats import criterion, divan, libtest
from equipoise.interop.reading import Process, SourceFile, numbered, read_within_bounds
from equipoise.model.errors import EquipoiseError
from equipoise.suites.running import run_to_end, stopped_at, times_of
from equipoise.suites.searching import files_named, text_in
from equipoise.suites.tool import BenchmarkTool, Command, Failure, FoundSuite, Measurement

_COMMAND = ("cargo", "bench")
_BUILD = "cargo bench --no-run"
_PASSED = b"test result: ok"
"""Line of a program of libtest, which may have tests but no benchmark."""
_LATEST_RUN = "new"
"""Name that criterion gives to the results of the latest run."""
_MAX_TIME_VARIABLE, _MAX_TIME_S = "DIVAN_MAX_TIME", "0.1"
_ANNOUNCED = re.compile(
    r"^Benchmarking ([^:\n]+)|^test (.+?)\s+\.\.\. *$|[├╰]─ (\S+) *$", re.MULTILINE
)
"""A benchmark that criterion, libtest or divan announced, and that printed no time yet."""
_MIN_TIME_VARIABLE = "DIVAN_MIN_TIME"


def _measure(command: Command, folder: Path) -> Iterator[Measurement | Failure]:
    _remove_earlier_results()
    output, results = folder / "output", folder / "criterion"
    results.mkdir()
    ending = run_to_end(_with_short_runs(command), output, _variables(command, results))
    if ending.timed_out:
        raise stopped_at(_running(output.read_text("utf-8", "replace")), ending)
    has_failed = ending.problem is not None
    labelled = list(_labelled_processes(output, results, has_failed=has_failed))
    counts = Counter(process.benchmark for _, process in labelled)
    names = numbered(
        f"{label}: {process.benchmark}"
        if label and counts[process.benchmark] > 1
        else process.benchmark
        for label, process in labelled
    )
    yield from times_of(
        Process(name, process.values) for name, (_, process) in zip(names, labelled, strict=True)
    )
    if has_failed:
        measured = {label for label, _ in labelled}
        failures = [failure for failure in _failures(output) if failure.benchmark not in measured]
        if not failures or not measured:
            ending.require_success()
        yield from failures


def _failures(output: Path) -> Iterator[Failure]:
    """Yield each program that did not pass, as if it failed at its last benchmark."""
    _, *parts = cargo_runner.PROGRAM_LINE.split(output.read_bytes())
    for label, text in zip(parts[::3], parts[2::3], strict=True):
        if _PASSED in text:
            continue
        running = _running(text.decode("utf-8", "replace"))
        place = "" if running is None else f" at {running}"
        reason = f"the program failed{place}: run the command by hand to see why"
        yield Failure(label.decode("utf-8", "replace"), reason)


def _running(text: str) -> str | None:
    """Return the last benchmark that criterion, divan, libtest or bencher announced."""
    names = _ANNOUNCED.findall(text)
    return next(filter(None, names[-1])).strip() if names else None


def _variables(command: Command, results: Path) -> dict[str, str]:
    variables = {cargo_runner.RESULTS_VARIABLE: str(results)}
    is_set = {_MAX_TIME_VARIABLE, _MIN_TIME_VARIABLE} & os.environ.keys()
    # An option --max-time has precedence over the variable.
    if not is_set and not any(word.partition("=")[0] == "--min-time" for word in command):
        variables[_MAX_TIME_VARIABLE] = _MAX_TIME_S
    return variables


def _with_short_runs(command: Command) -> Command:
    """Return the command with options for `cargo bench` to run programs by `cargo_runner`."""
    if os.path.basename(command[0]) != "cargo" or "bench" not in command:
        return command
    options_start = command.index("bench") + 1
    options: tuple[str, ...] = cargo_runner.cargo_options()
    if "--no-fail-fast" not in command:
        # A program that fails does not hide the others.
        options = (*options, "--no-fail-fast")
    return (*command[:options_start], *options, *command[options_start:])


def _labelled_processes(
    output: Path, results: Path, *, has_failed: bool
) -> Iterator[tuple[str, Process]]:
    """Yield the benchmarks, each with the package and the name of its program.

    If cargo has failed, programs whose output cannot be read are left out.
    """
    source = read_within_bounds("the output of cargo", output) if output.stat().st_size else None
    content = b"" if source is None else source.content
    program_lines = list(cargo_runner.PROGRAM_LINE.finditer(content))
    if not program_lines:
        # The user has a runner of his own, or the command is not cargo.
        yield from (("", process) for process in _printed(output, "", content))
        yield from (("", process) for process in _saved(_criterion_folder()))
    starts = [*(line.start() for line in program_lines), len(content)]
    for line, end in zip(program_lines, starts[1:], strict=True):
        label = line["label"].decode("utf-8", "replace")
        saved = list(_saved(results / os.fsdecode(line["file"])))
        # A program of criterion may print its results like libtest, too.
        try:
            processes = saved or list(_printed(output, label, content[line.end() : end]))
        except EquipoiseError:
            if not has_failed:
                raise
            continue
        yield from ((label, process) for process in processes)


def _printed(output: Path, label: str, content: bytes) -> Iterator[Process]:
    """Yield the benchmarks that libtest, bencher or divan printed."""
    file = SourceFile(f"the output of {label or 'cargo'}", output, content)
    for text_format in (libtest.FORMAT, divan.FORMAT):
        yield from text_format.read(file).processes


def _saved(results: Path) -> Iterator[Process]:
    """Yield the latest results of criterion in a folder."""
    if any(results.rglob("sample.json")):
        for process in criterion.FORMAT.read(read_within_bounds(str(results), results)).processes:
            if process.levels.get(criterion.SAVED_RUN) == _LATEST_RUN:
                yield process


def _criterion_folder() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", "target"), "criterion")


def _remove_earlier_results() -> None:
    # A gate sets both variables. Without them, the folder may contain results of the user.
    if os.environ.get(METRICS_VARIABLE) and os.environ.get("CARGO_TARGET_DIR"):
        shutil.rmtree(_criterion_folder(), ignore_errors=True)


def _find(folder: Path) -> FoundSuite | None:
    if not (folder / "Cargo.toml").is_file():
        return None
    for manifest in files_named(folder, r"Cargo\.toml"):
        name = manifest.relative_to(folder)
        try:
            content = tomllib.loads(text_in(manifest))
        except tomllib.TOMLDecodeError:
            # Cargo will name the error.
            continue
        if "bench" in content:
            return FoundSuite(f"{name} has a [[bench]]", _COMMAND, _BUILD)
        if any((manifest.parent / "benches").glob("*.rs")):
            return FoundSuite(f"{name} has the folder benches", _COMMAND, _BUILD)
    return None


TOOL = BenchmarkTool(
    "cargo",
    measure=_measure,
    find=_find,
    tried_with="criterion 0.8, divan 0.1, bencher 0.1, CodSpeed's crates 6.0",
    command=_COMMAND,
    build=_BUILD,
    # In a common target folder, cargo would build again in every trial.
    environment={"CARGO_TARGET_DIR": "{tree}/target"},
)
