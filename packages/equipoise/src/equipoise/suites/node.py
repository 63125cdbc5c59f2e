"""The common parts of the tools of Node: ``package.json``, installed packages, and tinybench.

vitest measures with tinybench, too. Neither tool has an option for the time of a benchmark. So a
module that Node loads first, ``helpers/equipoise_tinybench.mjs``, shortens the runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from equipoise import helpers
from equipoise.interop.reading import DECODE_ERRORS, read_within_bounds
from equipoise.suites.running import READ_HINT, TIMEOUT_VARIABLE
from equipoise.suites.searching import text_in

INSTALL = "if test -f package-lock.json; then npm ci; else npm install; fi"
"""Shell line that installs the packages of a project of npm."""
_INSTALLS_BY_LOCK_FILE = {
    "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
    "yarn.lock": "yarn install --frozen-lockfile",
}
TINYBENCH_MODULE = Path(helpers.__file__).with_name("equipoise_tinybench.mjs")
"""Module of Node that shortens the runs of tinybench, and writes the times."""
_RESULTS_NAME = "the results of tinybench"
_RESULTS_VARIABLE = "EQUIPOISE_TINYBENCH"
_RUNNING_VARIABLE = "EQUIPOISE_TINYBENCH_RUNNING"
_OPTIONS_VARIABLE = "NODE_OPTIONS"


class Manifest(Struct, frozen=True):
    """The used part of a ``package.json``."""

    version: str = ""
    scripts: dict[str, str] = {}
    dependencies: dict[str, str] = {}
    dev_dependencies: dict[str, str] = field(name="devDependencies", default_factory=dict)
    peer_dependencies: dict[str, str] = field(name="peerDependencies", default_factory=dict)

    def depends_on(self, package: str) -> bool:
        """Return whether the project uses a package."""
        return any(
            package in dependencies
            for dependencies in (self.dependencies, self.dev_dependencies, self.peer_dependencies)
        )


def manifest_in(folder: Path) -> Manifest | None:
    """Return the ``package.json`` of a folder; ``None`` if it is missing or cannot be read."""
    try:
        return msgspec.json.decode(text_in(folder / "package.json"), type=Manifest)
    except DECODE_ERRORS:
        # npm will name the error.
        return None


def install_line(folder: Path) -> str:
    """Return the shell line that installs the packages of a project."""
    for lock_file, line in _INSTALLS_BY_LOCK_FILE.items():
        if (folder / lock_file).is_file():
            return line
    return INSTALL


def installed_version(package: str) -> str:
    """Return the version of a package that programs in the working folder import.

    Raise `SystemExit` if the package is not installed.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        manifest = manifest_in(folder / "node_modules" / package)
        if manifest is not None:
            return manifest.version
    raise SystemExit(f"{package} is not installed in {here}/node_modules: build with `npm ci`")


class Task(Struct):
    """A task of tinybench, with its time or the reason why it has none."""

    version: str
    """Version of tinybench."""
    task: str
    bench: str | None = None
    """Name of the series of tasks; ``None`` if the script gave none."""
    median_ms: float | None = None
    """Median of the calls: a few calls that the host interrupts change a mean."""
    failure: str | None = None

    @property
    def name(self) -> str:
        """Name of the task behind the name of its series."""
        return self.task if self.bench is None else f"{self.bench} > {self.task}"

    @property
    def problem(self) -> str:
        """Reason why the task has no time, in one line."""
        return " ".join((self.failure or "it has no time").split())


def tasks_in(results: Path) -> list[Task]:
    """Return the tasks in a file that `TINYBENCH_MODULE` wrote.

    Raise `SystemExit` if a line cannot be read, and `UnusableInput` if the file cannot.
    """
    tasks: list[Task] = []
    for number, line in read_within_bounds(_RESULTS_NAME, results).lines():
        try:
            tasks.append(msgspec.json.decode(line, type=Task))
        except DECODE_ERRORS as error:
            raise SystemExit(
                f"{_RESULTS_NAME}: line {number} cannot be read: {error}; {READ_HINT}"
            ) from None
    return tasks


def short_runs(results: Path, running: Path) -> Mapping[str, str]:
    """Return variables with which tinybench runs briefly, and writes its times to a file.

    The file ``running`` gets the name of the task that runs, if the process may be ended for it.
    """
    option = f"--import={TINYBENCH_MODULE.as_uri()}"
    own_options = os.environ.get(_OPTIONS_VARIABLE, "")
    return {
        _OPTIONS_VARIABLE: f"{own_options} {option}".strip(),
        _RESULTS_VARIABLE: str(results),
        **({_RUNNING_VARIABLE: str(running)} if TIMEOUT_VARIABLE in os.environ else {}),
    }
