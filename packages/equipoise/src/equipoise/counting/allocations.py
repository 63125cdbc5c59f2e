"""Count the allocations of a command with a preloaded library, over any allocator.

The recorder (``crates/interpose/recorder``) maps one file into each process, so the counts survive
a crash. ``crates/interpose/recorder/src/file.rs`` defines the file's layout.

Python has an allocator of its own for small objects. The variable ``PYTHONMALLOC`` lets it call
malloc for each object, so that each object counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from equipoise.measure.installation import native_programs, require_file
from equipoise.model.errors import UnusableInput

ALLOCATIONS = "allocations"
BYTES = "allocated_bytes"
LIBRARY = "libequipoise_recorder.so"
FOLDER_VARIABLE = "EQUIPOISE_ALLOCATIONS"
"""Variable that names the folder for the recorder's files."""
FILE_PATTERN = "*.allocations"
FILE_MARK = int.from_bytes(b"EQALLOC1", "little")
HEADER_FIELDS = (
    "magic table_offset table_bytes max_tables tables_used classes lifetimes row_words maps_offset "
    "maps_bytes samples_offset sample_bytes max_samples samples_taken process_id parent_id "
    "first_ticks first_ns second_ticks second_ns steady_clock ended children_without_file "
    "calls_without_table births_without_memory machine tables_without_space samples_without_space "
    "maps_without_space"
).split()
"""Numbers at the beginning of the file, in their order."""
TABLE_WORDS_BEFORE_ROWS = 8
WORD_BYTES = 8
_UNCOUNTED = ("children_without_file", "calls_without_table")
"""Fields of the header with the number of processes and of calls that are not counted."""
_PYTHON_ALLOCATOR = {"PYTHONMALLOC": "malloc"}


def recording_variables(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which each process writes its allocations into a folder.

    Raise `UnusableInput` if the recorder is missing.
    """
    library = native_programs() / LIBRARY
    require_file(library, f"{library} is missing")
    libraries = (str(library), *environment.get("LD_PRELOAD", "").split())
    return {**environment, "LD_PRELOAD": " ".join(libraries), FOLDER_VARIABLE: str(folder)}


def counted_process(
    command: tuple[str, ...], environment: Mapping[str, str], folder: Path
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the command and the environment with which the recorder counts; errors as above."""
    return command, {**_PYTHON_ALLOCATOR, **recording_variables(environment, folder)}


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
    counts = [_counts_of(file) for file in files]
    return {
        ALLOCATIONS: sum(allocations for allocations, _ in counts),
        BYTES: sum(allocated_bytes for _, allocated_bytes in counts),
    }


def _counts_of(file: Path) -> tuple[int, int]:
    """Return the allocations of one process, and their bytes."""
    with file.open("rb") as stream:
        numbers = memoryview(stream.read(WORD_BYTES * len(HEADER_FIELDS))).cast("Q").tolist()
        header = dict(zip(HEADER_FIELDS, numbers, strict=False))
        is_complete = len(header) == len(HEADER_FIELDS) and header["magic"] == FILE_MARK
        if not is_complete or any(header[name] for name in _UNCOUNTED):
            raise UnusableInput(
                "some allocations were not counted: the disk of the temporary folder is full, or "
                "more than 1024 threads ran at a time",
                hint="set TMPDIR to a folder on another disk, or run fewer threads",
            )
        stream.seek(header["table_offset"])
        table_count = min(header["tables_used"], header["max_tables"])
        tables = memoryview(stream.read(table_count * header["table_bytes"])).cast("Q")
    words, row_words = header["table_bytes"] // WORD_BYTES, header["row_words"]
    rows = [
        table * words + TABLE_WORDS_BEFORE_ROWS + row * row_words
        for table in range(table_count)
        for row in range(header["classes"])
    ]
    # The first two numbers of a row.
    return sum(tables[row] for row in rows), sum(tables[row + 1] for row in rows)
