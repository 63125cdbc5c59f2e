"""One case is run and its outcome judged."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click

from equipoise.cli.main import cli
from equipoise.model.errors import EXIT_UNUSABLE_INPUT, UnusableInput, UserError
from equipoise.shared.safe_text import visible
from tests.fuzz.case import Case, Outcome, Target, WrongResult
from tests.fuzz.guard import Forbidden, Guard, OutOfTime

MAX_MESSAGE_LETTERS = 2000
"""Letters of an error: what is longer is no line or two."""
SOURCES = f"{os.sep}src{os.sep}equipoise"
"""Beginning of the folders of our sources: of `equipoise`, and of `equipoise_matching`."""
MINIMISING_RUNS = 150
MINIMISING_CPU_S = 10.0


def judge(target: Target, case: Case, folder: Path, guard: Guard) -> Outcome:
    """Run a case in the folder, which is emptied, and say how it ended."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    limit = target.cpu_seconds(case.variant)
    try:
        with warnings.catch_warnings():
            # Python would print it in the midst of what the user reads.
            warnings.simplefilter("error")
            for ignored in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
                warnings.simplefilter("ignore", ignored)
            with guard.watching(limit):
                target.run(case, folder)
    except OutOfTime as error:
        return Outcome("find", f"more than {limit:g} s in {_place(error)}", _trace(error))
    except (Forbidden, WrongResult) as error:
        return Outcome("find", f"{type(error).__name__}: {str(error)[:80]}", _trace(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, UserError):
            return _judged_error(error, _place(error))
        return Outcome("find", f"{type(error).__name__} in {_place(error)}", _trace(error))
    return Outcome("read")


def minimised(target: Target, case: Case, folder: Path, guard: Guard) -> Case:
    """Leave out parts of the content as long as the find stays the same."""
    signature = judge(target, case, folder, guard).signature
    step = max(1, len(case.content) // 2)
    ends = time.process_time() + MINIMISING_CPU_S
    runs = 0

    def may_go_on() -> bool:
        return runs < MINIMISING_RUNS and time.process_time() < ends

    while may_go_on():
        begin = 0
        shortened = False
        while begin < len(case.content) and may_go_on():
            less = Case(case.variant, case.content[:begin] + case.content[begin + step :])
            runs += 1
            if judge(target, less, folder, guard).signature == signature:
                case, shortened = less, True
            else:
                begin += step
        if step == 1 and not shortened:
            break
        step = max(1, step // 2)
    return case


def command_line(*arguments: str) -> str:
    """Run one command line of Equipoise as the program does and return its standard output.

    Raise `EquipoiseError` if the command refused its input. Raise `WrongResult` if the output would
    steer a terminal.
    """
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(list(arguments), prog_name="equipoise", standalone_mode=False)
        except click.ClickException as error:
            raise UnusableInput(" ".join(error.format_message().split()), hint="--help") from None
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    written = buffer.getvalue().decode("utf-8", "backslashreplace")
    # JSON on standard output is for programs: it escapes what its standard asks for.
    screen = [] if "-" in arguments else written.split("\n")
    for line in (*screen, *err.getvalue().split("\n")):
        if not line.isprintable():
            raise WrongResult(f"the screen obeys what `{arguments[0]}` printed: {line!r:.200}")
    return written


def _judged_error(error: UserError, place: str) -> Outcome:
    shown = visible(error.what)
    if not error.hint:
        return Outcome("find", f"an error without a hint in {place}", str(error)[:500])
    if not error.what.strip() or max(len(shown), len(error.hint)) > MAX_MESSAGE_LETTERS:
        return Outcome("find", f"an error of {len(shown)} letters in {place}", str(error)[:500])
    if error.exit_status != EXIT_UNUSABLE_INPUT:
        return Outcome("find", f"exit status {error.exit_status} in {place}", str(error)[:500])
    if "defect of Equipoise" in f"{error.what} {error.hint}":
        return Outcome("find", f"calls itself a defect in {place}", str(error)[:500])
    return Outcome("refused")


def _place(error: BaseException) -> str:
    """Name the innermost function of Equipoise that the error passed."""
    frames = _frames(error.__traceback__)
    ours = [one for one in frames if SOURCES in one[0]]
    file, function = (ours or frames or [("?", "?")])[-1]
    return f"{file.rpartition(SOURCES)[2].partition(os.sep)[2]}:{function}"


def _frames(trace: TracebackType | None) -> Sequence[tuple[str, str]]:
    return [(one.filename, one.name) for one in traceback.extract_tb(trace)]


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-12))[-3000:]
