"""Finds the first difference between the outputs of the baseline and of the candidate."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.measure.untimed import SHELL, describe_status, run_untimed, tail
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.record import Trial
from equipoise.shared.safe_text import short_line
from equipoise.shared.spelling import option

EXPECTED_VARIABLE = "EQUIPOISE_EXPECTED"
"""Variable with the path of the baseline's output, for ``--check``."""
ACTUAL_VARIABLE = "EQUIPOISE_ACTUAL"
"""Variable with the path of the candidate's output, for ``--check``."""
_MAX_LINE_BYTES = 1 << 16
"""Number of bytes of a line that are read at once."""
_MAX_LINE_LETTERS = 60
"""Number of letters that are kept of a line that differs."""
_LETTERS_BEFORE_DIFFERENCE = 20
"""Number of bytes that are kept before the first byte that differs."""
_NO_LINE_END = " (without a line end)"
_NO_LINE = "(no line: the output ends)"


class Difference(Struct, frozen=True):
    """One difference between two outputs, or between the ends of two trials."""

    line: int | None
    """Number of the line, from 1; ``None`` if the texts do not come from the outputs."""
    expected: str
    actual: str


class OutputFiles(Struct, frozen=True):
    """Files with the standard output of the latest trial of each condition."""

    expected: Path
    """Output of the baseline."""
    actual: Path
    """Output of the candidate. Both paths have the same length."""

    @staticmethod
    def within(folder: Path) -> OutputFiles:
        """Return the files in a private folder."""
        return OutputFiles(folder / "output-0", folder / "output-1")


class OutputCheck(Struct, frozen=True):
    """The comparison of two outputs: byte for byte, or by a shell line of the user."""

    files: OutputFiles
    line: str | None
    """Shell line; the outputs are equal if its exit status is 0."""
    environment: Mapping[str, str]
    """Complete environment of the shell line."""
    folder: str
    """Folder in which the shell line runs."""
    timeout_s: float

    def difference(self) -> Difference | None:
        """Return the first difference; ``None`` if the outputs are equal.

        Raise `ConditionFailed` if the shell line takes too long.
        """
        if self.line is None:
            return first_difference(self.files.expected, self.files.actual)
        environment = {
            **self.environment,
            EXPECTED_VARIABLE: str(self.files.expected),
            ACTUAL_VARIABLE: str(self.files.actual),
        }
        with tempfile.TemporaryFile() as printed:
            command = (SHELL, "-c", self.line)
            try:
                status = run_untimed(
                    command, environment, self.folder, self.timeout_s, printed, printed
                )
            except subprocess.TimeoutExpired:
                raise ConditionFailed(
                    f"{option('check')} did not end within {self.timeout_s:g} s: {self.line}",
                    hint=f"make the comparison faster, or raise {option('timeout')}",
                ) from None
            if status == 0:
                return None
            lines = [line for line in tail(printed.fileno()).splitlines() if line.strip()]
            reason = lines[-1] if lines else describe_status(status)
        return Difference(None, "equal outputs", _short(reason))


def first_difference(expected: Path, actual: Path) -> Difference | None:
    """Return the first line that differs between two files; ``None`` if they are equal."""
    number = 1
    with expected.open("rb") as expected_file, actual.open("rb") as actual_file:
        while True:
            pieces = [file.readline(_MAX_LINE_BYTES) for file in (expected_file, actual_file)]
            if pieces[0] != pieces[1]:
                return Difference(number, *_differing_parts(*pieces))
            if not pieces[0]:
                return None
            number += pieces[0].endswith(b"\n")


def different_end(baseline: Trial, candidate: Trial) -> Difference | None:
    """Return how the ends of two trials differ; ``None`` if both ended in the same way.

    A trial that ran out of time is the slowest, and its output is not compared.
    """
    if baseline.failure == candidate.failure:
        return None
    expected, actual = (trial.failure or "exit status 0" for trial in (baseline, candidate))
    return Difference(None, _short(expected), _short(actual))


def require_repeatable(difference: Difference | None) -> None:
    """Raise `UnusableInput` if two runs of the baseline on one input gave other outputs."""
    if difference is None:
        return
    place = "" if difference.line is None else f" in line {difference.line}"
    raise UnusableInput(
        f"two runs of the baseline print different outputs{place}: `{difference.expected}` and "
        f"`{difference.actual}`",
        hint=f"compare outputs by a line of your own: {option('check', 'CMD')}, with the files "
        f"${EXPECTED_VARIABLE} and ${ACTUAL_VARIABLE}",
    )


def _differing_parts(expected: bytes, actual: bytes) -> tuple[str, str]:
    """Return two lines as short texts, each from shortly before the first byte that differs."""
    common = len(os.path.commonprefix([expected, actual]))
    start = max(0, common - _LETTERS_BEFORE_DIFFERENCE)
    only_ends_differ = expected.removesuffix(b"\n") == actual.removesuffix(b"\n")
    ends = (
        _NO_LINE_END if only_ends_differ and not line.endswith(b"\n") else ""
        for line in (expected, actual)
    )
    return _part_of(expected, start, next(ends)), _part_of(actual, start, next(ends))


def _part_of(line: bytes, start: int, end: str) -> str:
    """Return a line from a byte on, as a short text in which nothing controls a terminal."""
    if not line:
        return _NO_LINE
    part = line.removesuffix(b"\n")[start:].decode("utf-8", "backslashreplace")
    return _short(f"…{part}" if start else part) + end


def _short(text: str) -> str:
    return short_line(text, _MAX_LINE_LETTERS)
