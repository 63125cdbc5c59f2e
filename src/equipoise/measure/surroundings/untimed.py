"""Running the command of a condition once, untimed, to see what it does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from equipoise.measure.surroundings.host import Unknown


def run_untimed(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    timeout_s: float,
    *,
    errors_to: Path | None = None,
) -> int:
    """Run a command to its end and return its status, negative where a signal ended it.

    Parameters
    ----------
    environment
        The complete one.
    errors_to
        A file for its standard error; it goes nowhere by default.

    Raises
    ------
    Unknown
        It cannot be run, or takes longer than ``timeout_s`` seconds.
    """
    with open(os.devnull if errors_to is None else errors_to, "wb") as errors:
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise Unknown(f"{command[0]}: {error.strerror}") from None
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise Unknown(f"it took longer than {timeout_s:g} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
