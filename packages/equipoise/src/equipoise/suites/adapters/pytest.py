"""Python: tests with the fixture of Equipoise or of pytest-benchmark.

The plugin `equipoise.helpers.pytest_plugin` reports the times from inside of pytest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from equipoise.suites.running import run
from equipoise.suites.searching import first_file_with
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement

_COMMAND = ("pytest", "-q", "-p", "no:cacheprovider")
_USE_OF_FIXTURE = r"^\s*(async )?def test\w*\((.*\W)?(equipoise_)?benchmark\b"


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    run(command, folder / "output")
    return iter(())


def _find(folder: Path) -> FoundSuite | None:
    file = first_file_with(folder, r"(test|bench)\w*\.py|\w+_(test|bench)\w*\.py", _USE_OF_FIXTURE)
    if file is None:
        return None
    return FoundSuite(f"{file} has a test with a benchmark fixture", _COMMAND)


TOOL = BenchmarkTool(
    "pytest",
    measure=_measure,
    find=_find,
    command=_COMMAND,
    environment={"EQUIPOISE_GATE_TREE": "{tree}", "EQUIPOISE_GATE_INSTEAD_OF": "{own}"},
)
