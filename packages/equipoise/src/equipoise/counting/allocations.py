"""Count the allocations of a command with a preloaded library, over any allocator.

Python has an allocator of its own for small objects. The variable ``PYTHONMALLOC`` lets it call
malloc for each object, so that each object counts. With one ``PYTHONHASHSEED``, the same sets and
dictionaries have the same sizes in all runs. Variables of the user have precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from equipoise.helpers.allocation_counts import (
    FILE_PATTERN,
    FOLDER_VARIABLE,
    RECORDER,
    Counts,
    CountsMissing,
)
from equipoise.helpers.allocation_counts import counts_in as counts_in_file
from equipoise.measure.installation import native_programs, require_file
from equipoise.model.errors import UnusableInput

ALLOCATIONS, BYTES = Counts._fields
_PYTHON_VARIABLES = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}


def recording_variables(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which each process writes its allocations into a folder.

    Raise `UnusableInput` if the recorder is missing.
    """
    library = native_programs() / RECORDER
    require_file(library, f"{library} is missing")
    libraries = (str(library), *environment.get("LD_PRELOAD", "").split())
    variables = {"LD_PRELOAD": " ".join(libraries), FOLDER_VARIABLE: str(folder)}
    return {**environment, **variables}


def counting_variables(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment as `recording_variables`, in which Python's counts can repeat.

    Raise `UnusableInput` if the recorder is missing.
    """
    return {**_PYTHON_VARIABLES, **recording_variables(environment, folder)}


def counted_process(
    command: tuple[str, ...], environment: Mapping[str, str], folder: Path
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the command and the environment with which the recorder counts; errors as above."""
    return command, counting_variables(environment, folder)


def counts_in(folder: Path) -> dict[str, int]:
    """Return the allocations of all processes of a run, and their bytes.

    Raise `UnusableInput` if an allocation may be missing.
    """
    files = sorted(folder.glob(FILE_PATTERN))
    if not files:
        raise UnusableInput(
            "no allocation was counted: the program is linked statically, has its own allocator, "
            "or drops LD_PRELOAD",
            hint="link it dynamically with the C library's allocator; for Go, use --kind go",
        )
    try:
        counts = [counts_in_file(file) for file in files]
    except CountsMissing as reason:
        raise UnusableInput(
            f"some allocations were not counted: {reason}",
            hint="set TMPDIR to a folder on another disk, or run fewer than 1024 threads at a time",
        ) from None
    return {
        ALLOCATIONS: sum(int(process.allocations) for process in counts),
        BYTES: sum(int(process.allocated_bytes) for process in counts),
    }
