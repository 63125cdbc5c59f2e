"""Runs both revisions untimed before the campaign, and observes which files they use.

Two runs of the baseline on one input must print the same. One run of the baseline and two of the
candidate are observed (`equipoise.why.evidence.observer`). The second run of the candidate shows
whether it reads results that the first has left in files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.kinds.verify.objections import MAX_OBJECTIONS
from equipoise.kinds.verify.outputs import OutputCheck, require_repeatable
from equipoise.kinds.verify.terms import BASELINE, CANDIDATE, Objection
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, Report, Request
from equipoise.measure.trials import failure_of, own_environment, without_own_variables
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import PLAIN_PADDING_VARIABLE, Condition, Output, Plan
from equipoise.why.evidence.observer import FileUse, Process, SystemCalls, read_calls, wrap_calls

_PROC = "/proc/"
_SYSTEM_FOLDERS = (
    *(
        "/usr/",
        "/lib/",
        "/lib32/",
        "/lib64/",
        "/bin/",
        "/sbin/",
        "/etc/",
        "/opt/",
        "/nix/",
        "/sys/",
    ),
    *("/run/", "/var/lib/", "/snap/"),
)
"""Folders with files of the system, in which programs keep no results."""
_DEVICES = "/dev/"
_SHARED_MEMORY = "/dev/shm"
_BYTE_CODE = ".pyc"
_NUMBER = re.compile(r"\d+")


class Observations(Struct, frozen=True):
    """Objections that the observed runs have shown."""

    objections: tuple[Objection, ...]
    unobserved_because: str | None
    """Reason why no run could be observed; ``None`` if all were."""


class UntimedRuns(Struct, frozen=True):
    """Runs the conditions of a plan as trials do, but without a time."""

    plan: Plan
    launcher: Launcher
    scratch: Path
    """Private folder for evidence."""

    def run(self, index: int, output: Path | None) -> Report:
        """Run a condition once; raise `ConditionFailed` if the baseline fails."""
        condition, measure = self.plan.conditions[index], self.plan.measure
        report = self.launcher.run(self._request(condition, Process(condition.command), output))
        _, failure = failure_of(report, measure.timeout_s)
        if failure is not None and index == BASELINE:
            raise ConditionFailed(
                f"{condition.name} failed: {failure}{stderr_suffix(report.error_tail)}",
                hint="correct the command: the baseline must end with exit status 0",
            )
        return report

    def observe(self, index: int) -> SystemCalls:
        """Run a condition once under the observer of system calls.

        Raise `UnusableInput` if this host cannot observe it.
        """
        condition = self.plan.conditions[index]
        # Of a stopped process, the name of each file is known.
        process = wrap_calls(
            Process(condition.command, self._environment(condition)), self.scratch, "ptrace"
        )
        report = self.launcher.run(self._request(condition, process, None))
        try:
            return read_calls(self.scratch)
        except UnusableInput as error:
            _, failure = failure_of(report, self.plan.measure.timeout_s)
            raise UnusableInput(
                f"the observed run of {condition.name} gave no evidence: {failure or error.what}"
                f"{stderr_suffix(report.error_tail)}"
            ) from error
        finally:
            for file in self.scratch.glob("*.json"):
                file.unlink()

    def _environment(self, condition: Condition) -> Mapping[str, str]:
        # As in a trial, the path identifies the processes of a killed campaign.
        padding = {PLAIN_PADDING_VARIABLE: f"{self.scratch}/"}
        return without_own_variables({**own_environment(), **padding, **condition.environment})

    def _request(self, condition: Condition, process: Process, output: Path | None) -> Request:
        return Request(
            argv=process.command,
            environment=self._environment(condition),
            working_folder=condition.process.working_folder or self.plan.measure.working_folder,
            input=self.plan.measure.input,
            output=Output() if output is None else Output("file", str(output)),
            timeout_s=self.plan.measure.timeout_s,
            process=condition.process,
        )


def observe_before(
    plan: Plan, check: OutputCheck, trees: tuple[Path, Path], built_ns: int, scratch: Path
) -> Observations:
    """Check that the baseline's output is repeatable, and observe the files of both conditions.

    Files of ``trees`` that changed after ``built_ns`` are of earlier runs, not of the build. An
    input that the plan names must exist.

    Raise `UnusableInput` if two runs of the baseline give other outputs, and `ConditionFailed` if
    the baseline fails.
    """
    folder = scratch / "observed"
    folder.mkdir()
    with Launcher(launcher_program(), shared_scratch=scratch) as launcher:
        runs = UntimedRuns(plan, launcher, folder)
        runs.run(BASELINE, check.files.expected)
        runs.run(BASELINE, check.files.actual)
        require_repeatable(check.difference())
        try:
            baseline = runs.observe(BASELINE)
            shared_before = _shared_memory()
            first = runs.observe(CANDIDATE)
            shared_files = _shared_memory() - shared_before
            second = runs.observe(CANDIDATE)
        except UnusableInput as error:
            return Observations((), error.what)
    files = _FilesOfRuns(trees, built_ns, baseline.files, first.files, second.files)
    kept = dict.fromkeys((*files.kept(), *sorted(shared_files)))
    objections = (
        *(Objection("reads_proc", name) for name in list(files.proc())[:MAX_OBJECTIONS]),
        *(Objection("kept_file", name) for name in list(kept)[:MAX_OBJECTIONS]),
    )
    return Observations(objections, None)


class _FilesOfRuns:
    """The files of one run of the baseline, and of two runs of the candidate."""

    def __init__(
        self,
        trees: tuple[Path, Path],
        built_ns: int,
        baseline: tuple[FileUse, ...],
        first: tuple[FileUse, ...],
        second: tuple[FileUse, ...],
    ) -> None:
        self._roots = [f"{os.path.realpath(tree)}/" for tree in trees]
        self._built_ns = built_ns
        self._of_baseline = {
            self._relative(BASELINE, use.name) for use in baseline if use.reads or use.bytes_read
        }
        self._first = {use.name: use for use in first}
        self._second = second

    def proc(self) -> Iterator[str]:
        """Yield the files below ``/proc`` that only the candidate reads; numbers become ``N``."""
        names = (_NUMBER.sub("N", use.name) for use in self._second if use.bytes_read)
        known = {_NUMBER.sub("N", name) for name in self._of_baseline}
        yield from (
            name for name in dict.fromkeys(names) if name.startswith(_PROC) and name not in known
        )

    def kept(self) -> Iterator[str]:
        """Yield the files that the candidate reads, and that neither git nor the build has."""
        for use in self._second:
            name = use.name
            if not use.bytes_read or not _may_keep_results(name):
                continue
            relative = self._relative(CANDIDATE, name)
            earlier = self._first.get(name)
            is_written_once = earlier is not None and use.bytes_written < earlier.bytes_written
            # A temporary file is written in the same run, with a new name or removed at the end.
            is_temporary = use.bytes_written and (earlier is None or not os.path.exists(name))
            is_known = relative in self._of_baseline or is_temporary
            is_left = not is_known and self._is_left(name)
            if is_written_once or is_left:
                yield relative

    def _relative(self, side: int, name: str) -> str:
        """Return the path of a file in the working tree of its revision; other paths unchanged."""
        return name.removeprefix(self._roots[side])

    def _is_left(self, name: str) -> bool:
        """Return whether a file is of an earlier run, not of git and not of the build."""
        if not name.startswith(self._roots[CANDIDATE]):
            return True
        try:
            return os.stat(name).st_ctime_ns > self._built_ns
        except OSError:
            # It was removed meanwhile.
            return True


def _may_keep_results(name: str) -> bool:
    """Return whether a file of an observed run may hold results of an earlier run."""
    if not name.startswith("/") or name.endswith(_BYTE_CODE):
        return False
    if name.startswith(_SHARED_MEMORY):
        return True
    return not name.startswith((_PROC, _DEVICES, *_SYSTEM_FOLDERS))


def _shared_memory() -> set[str]:
    """Return the files of shared memory, whose reads and writes are not system calls."""
    try:
        with os.scandir(_SHARED_MEMORY) as entries:
            return {
                entry.path
                for entry in entries
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid()
            }
    except OSError:
        return set()
