"""Read the metrics that a workload reports: JSON lines in the file named by EQUIPOISE_METRICS.

The measured program may be hostile, and can change the file. So only a regular file is read, up to
the limits below, without following a link and without waiting.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.files.writing import OPEN_FOLDER, remove_below
from equipoise.measure.untimed import describe_status, run_untimed, stderr_suffix, tail
from equipoise.model.plan import Condition, Plan
from equipoise.model.quantities import MAX_MEASURED_VALUE
from equipoise.model.record import Accounting, Better, Sample

METRICS_VARIABLE = "EQUIPOISE_METRICS"
"""Variable with the path of the file to which a workload may write its metrics."""
MAX_BYTES = 64 * 1024 * 1024
MAX_LINES = 2_000_000
MAX_LINE_BYTES = 1024 * 1024
MAX_ITERATION = 2**53
"""Maximum integer that every JSON reader and the ledger keep exactly."""
ALL_METRICS = "metrics"
"""Key of `Accounting.unknown` for a reason that holds for every metric of the workload."""
_LAUNCHER_METRICS = frozenset(Accounting.__struct_fields__)
"""Metrics that the launcher measures; a workload may not report them."""
_ACCOUNTED_METRICS = _LAUNCHER_METRICS | {"cpu_s"}
"""Metrics that a workload need not report; ``cpu_s`` is computed from two others."""
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FILE_TYPES = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class WorkloadMetrics(Struct, frozen=True):
    """Samples that one trial reported, and problems with its file."""

    samples: tuple[Sample, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Reason why a metric has no value, by metric, as the workload reported it."""
    problem: str | None = None
    """Sentence about the first bad line and the number of bad lines; ``None`` without bad lines."""
    unreadable_because: str | None = None
    """Reason why the whole file is left out; ``None`` if the file was read or does not exist."""


class _Line(Struct, frozen=True):
    metric: str
    value: float | None
    unknown_because: str | None = None
    """Reason why ``value`` is null."""
    iteration: Annotated[int, msgspec.Meta(ge=0, le=MAX_ITERATION)] | None = None
    unit: str | None = None
    better: Better = "lower"
    resolution: float | None = None


class _BadMetrics(Exception):
    """Reason why a metrics file, or one of its lines, is left out, such as "is a FIFO"."""


class MetricsFile:
    """The file in a private folder to which each trial may write its metrics.

    A measured program can remove or replace the folder as well as the file.
    """

    def __init__(self, folder: Path, name: str = "metrics.jsonl") -> None:
        self._folder = folder
        self._name = name
        self.path = folder / name
        """Value of ``EQUIPOISE_METRICS``."""

    def clear(self) -> None:
        """Remove the file of the previous trial, and make the folder writable."""
        # An existing folder stays. If it was replaced, `read` reports that.
        with suppress(FileExistsError):
            self._folder.mkdir(mode=0o700)
        try:
            folder = os.open(self._folder, OPEN_FOLDER)
        except OSError:
            return
        try:
            os.fchmod(folder, 0o700)
            # If the file cannot be removed, `read` reports its type after the trial.
            with suppress(FileNotFoundError):
                remove_below(folder, self._name)
        finally:
            os.close(folder)

    def read(self) -> WorkloadMetrics:
        """Read the metrics of one trial; bad lines are left out and counted."""
        try:
            folder = os.open(self._folder, OPEN_FOLDER)
        except OSError as error:
            is_removed = error.errno == errno.ENOENT
            event = "removed" if is_removed else "replaced or made unreadable"
            return WorkloadMetrics(unreadable_because=f"the folder of its metrics file was {event}")
        try:
            return _parse_lines(_read_lines(folder, self._name))
        except FileNotFoundError:
            return WorkloadMetrics()
        except _BadMetrics as reason:
            return WorkloadMetrics(unreadable_because=f"its metrics file {reason}")
        except OSError as error:
            cause = (error.strerror or str(error)).lower()
            return WorkloadMetrics(unreadable_because=f"its metrics file cannot be read: {cause}")
        finally:
            os.close(folder)


def read_metrics(path: Path) -> WorkloadMetrics:
    """Read the metrics that one process wrote to a file."""
    return MetricsFile(path.parent, path.name).read()


def with_missing_metrics(
    accounting: Accounting, unreadable_because: str, plan: Plan, condition: Condition
) -> Accounting:
    """Return the accounting, with a reason for each metric that the workload failed to report."""
    judgement = plan.judgement
    expected_metrics = {*condition.reports, judgement.primary_metric, *judgement.other_metrics}
    missing_metrics = sorted(expected_metrics - _ACCOUNTED_METRICS - set(accounting.counters))
    reasons = dict.fromkeys((*missing_metrics, ALL_METRICS), unreadable_because)
    return replace(accounting, unknown={**accounting.unknown, **reasons})


def _read_lines(folder: int, name: str) -> list[bytes]:
    # The type is checked first, because opening a device may change the device.
    _check_file_type(os.lstat(name, dir_fd=folder))
    with open(os.open(name, _FILE_FLAGS, dir_fd=folder), "rb") as file:
        _check_file_type(os.fstat(file.fileno()))
        # Another process may still write to the file, so the file may grow beyond its size.
        content = file.read(MAX_BYTES + 1)
    _check_size(len(content))
    if content.count(b"\n") + content.count(b"\r") > MAX_LINES:
        raise _BadMetrics(f"has more than {MAX_LINES} lines")
    return content.splitlines()


def _check_file_type(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        file_type = _FILE_TYPES.get(stat.S_IFMT(status.st_mode), "something else")
        raise _BadMetrics(f"is {file_type}, not a regular file")
    _check_size(status.st_size)


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise _BadMetrics(f"has {size} bytes or more; at most {MAX_BYTES} are read")


def _parse_lines(lines: Iterable[bytes]) -> WorkloadMetrics:
    """Return the samples of the good lines, and a sentence about the first bad line."""
    decoder = msgspec.json.Decoder(_Line)
    samples: list[Sample] = []
    unknown: dict[str, str] = {}
    problem: str | None = None
    bad_lines = 0
    for line_number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                sample = _parse_line(decoder, line)
            except _BadMetrics as reason:
                bad_lines += 1
                problem = problem or f"line {line_number} of its metrics {reason}"
                continue
            if isinstance(sample, Sample):
                samples.append(sample)
            else:
                unknown.setdefault(sample.metric, sample.reason)
    if problem is not None and bad_lines > 1:
        problem += f"; {bad_lines} lines are left out"
    return WorkloadMetrics(tuple(samples), unknown, problem)


class _UnknownMetric(Struct, frozen=True):
    metric: str
    reason: str


def _parse_line(decoder: msgspec.json.Decoder[_Line], content: bytes) -> Sample | _UnknownMetric:
    if len(content) > MAX_LINE_BYTES:
        raise _BadMetrics(f"is longer than {MAX_LINE_BYTES} bytes")
    try:
        line = decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _BadMetrics(f"cannot be read: {error}") from None
    except RecursionError:
        raise _BadMetrics("cannot be read: it is nested too deeply") from None
    if line.value is None:
        if not line.unknown_because:
            raise _BadMetrics("has neither a value nor unknown_because")
        return _UnknownMetric(line.metric, line.unknown_because)
    if not math.isfinite(line.value):
        raise _BadMetrics("is not a finite number")
    if abs(line.value) > MAX_MEASURED_VALUE:
        raise _BadMetrics(f"has the value {line.value:g}, beyond {MAX_MEASURED_VALUE:g}")
    if line.metric in _LAUNCHER_METRICS:
        raise _BadMetrics(f"is named {line.metric}, which Equipoise measures itself")
    resolution = line.resolution
    if resolution is not None and not 0.0 < resolution < math.inf:
        raise _BadMetrics(
            f"has the resolution {resolution:g}, which is not a finite number above 0"
        )
    return Sample(line.metric, line.value, line.iteration, line.unit, line.better, resolution)


class UntimedRun(Struct, frozen=True):
    """The values of one untimed run of a condition, for the whole process."""

    samples: tuple[Sample, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Reason why a metric has no value, by metric."""
    failure: str | None = None
    """Reason why the run failed, in one line; ``None`` if it did not fail."""
    exit: int | None = None
    """Exit status; ``None`` if the run did not end in time."""


def run_for_metrics(
    condition: Condition, environment: Mapping[str, str], scratch: Path, timeout_s: float
) -> UntimedRun:
    """Run a condition once, untimed; return what it reported.

    The condition's own environment is added to ``environment``. ``scratch`` is a private folder for
    the metrics file. A run has failed if it has another exit status than 0, if it takes longer than
    ``timeout_s`` seconds, or if its metrics file has only bad lines.
    """
    metrics_file = MetricsFile(scratch)
    metrics_file.clear()
    variables = {**environment, METRICS_VARIABLE: str(metrics_file.path), **condition.environment}
    folder = condition.process.working_folder
    with tempfile.TemporaryFile() as errors:
        try:
            status = run_untimed(condition.command, variables, folder, timeout_s, errors)
        except subprocess.TimeoutExpired:
            return UntimedRun(failure=f"it did not end within {timeout_s:g} s")
        error_suffix = stderr_suffix(tail(errors.fileno()))
    failure = f"{describe_status(status)}{error_suffix}" if status != 0 else None
    metrics = metrics_file.read()
    # If there are good lines too, the campaign that follows warns about the bad lines.
    has_good_line = bool(metrics.samples or metrics.unknown)
    problem = metrics.unreadable_because or (None if has_good_line else metrics.problem)
    samples = tuple(sample for sample in metrics.samples if sample.iteration is None)
    return UntimedRun(samples, metrics.unknown, failure or problem, status)
