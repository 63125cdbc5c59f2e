"""Rust: ``cargo bench`` with criterion or libtest."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from equipoise.helpers import criterion_runner
from equipoise.helpers.equipoise_metrics import METRICS_VARIABLE
from equipoise.interop.formats import criterion, libtest
from equipoise.interop.reading import Process, read_within_bounds
from equipoise.suites.running import run, times_of
from equipoise.suites.searching import files_named, text_in
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement

_COMMAND = ("cargo", "bench")
_BUILD = "cargo bench --no-run"
_LATEST_RUN = "new"
"""Name that criterion gives to the results of the latest run."""


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    _remove_earlier_results()
    output = folder / "output"
    run(_with_short_runs(command), output)
    yield from times_of(_processes(output))


def _with_short_runs(command: Command) -> Command:
    """Return the command with options for `cargo bench` to run criterion's programs briefly."""
    if os.path.basename(command[0]) != "cargo" or "bench" not in command:
        return command
    options_start = command.index("bench") + 1
    options = criterion_runner.cargo_options()
    return (*command[:options_start], *options, *command[options_start:])


def _processes(output: Path) -> Iterator[Process]:
    if output.stat().st_size:
        yield from libtest.FORMAT.read(read_within_bounds("the output of cargo", output)).processes
    results = _criterion_folder()
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
    command=_COMMAND,
    build=_BUILD,
    # In a common target folder, cargo would build again in every trial.
    environment={"CARGO_TARGET_DIR": "{tree}/target"},
)
