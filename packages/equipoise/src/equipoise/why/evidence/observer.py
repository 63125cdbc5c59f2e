"""Start a command under the native observer (``crates/evidence``), and read its documents.

The observer gets system calls from the kernel's tracepoints; if these are forbidden, by ``ptrace``.
It samples stacks, weighted with seconds on a processor, seconds of waiting, or page faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from equipoise.measure.installation import native_programs, require_file
from equipoise.model.errors import UnusableInput

Document = TypeVar("Document")

EVIDENCE_PROGRAM = "equipoise-evidence"
DOCUMENT_VERSION = 1


class Process(Struct, frozen=True):
    """A command, and its complete environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class End(Struct, frozen=True):
    """End of the observed command: its exit status, or the signal that ended it."""

    exit: int | None
    signal: int | None


def under_observer(process: Process, document: Path, *options: str) -> Process:
    """Return the process under the observer; raise `UnusableInput` if the observer is missing."""
    observer = (str(native_file(EVIDENCE_PROGRAM)), *options, "--output", str(document), "--")
    return Process((*observer, *process.command), process.environment)


def native_file(name: str) -> Path:
    """Return the path of a native file of the package; raise `UnusableInput` if it is missing."""
    path = native_programs() / name
    return require_file(path, f"{path} is missing")


def read_document(file: Path, document_type: type[Document]) -> Document:
    """Read a document of the native program; raise `UnusableInput` if it is missing or invalid."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UnusableInput(
            f"no evidence was written to {file}: {error.strerror}",
            hint="run `equipoise why` again; if the error stays, install Equipoise again",
        ) from error
    return decode_document(content, str(file), document_type)


def decode_document(content: bytes, origin: str, document_type: type[Document]) -> Document:
    """Decode a document of the native program; raise `UnusableInput` about its ``origin``."""
    try:
        version = msgspec.json.decode(content, type=_Versioned).version
        if version == DOCUMENT_VERSION:
            return msgspec.json.decode(content, type=document_type)
    except msgspec.DecodeError as error:
        raise UnusableInput(
            f"{origin} cannot be read as evidence: {error}", hint="run `equipoise why` again"
        ) from error
    raise UnusableInput(
        f"{origin} has version {version} of the evidence format, not {DOCUMENT_VERSION}",
        hint="install Equipoise again, so that all its parts have the same version",
    )


class _Versioned(Struct, frozen=True):
    version: int


_CALLS_FILE = "system_calls.json"

Method = Literal["best", "tracepoints", "ptrace"]
"""Way to observe system calls; ``best`` uses tracepoints where the kernel allows them."""


class Frequency(Struct, frozen=True):
    """A value of an argument, and the minimum of its occurrences: rare values are not kept."""

    value: int
    count: int


class Calls(Struct, frozen=True):
    """All calls of one system call."""

    name: str
    count: int
    seconds: float
    """Seconds from entry to return, of all threads, in the calls that returned."""
    longest_s: float
    waits: bool
    """Whether the call mostly waits for another thread, process or device."""
    errors: Mapping[str, int]
    """Number of errors by name, such as ``ENOENT``."""
    unfinished: int
    """Number of calls of which no return was observed."""
    bytes_requested: int | None
    """Sum of the size arguments; ``None`` if the call has no size argument."""
    bytes_transferred: int | None
    """Sum of the bytes read or written; ``None`` if the call neither reads nor writes."""
    sizes: tuple[Frequency, ...]
    """The most frequent size arguments, at most 8."""
    modes: tuple[Frequency, ...]
    """The most frequent advice of madvise, operations of futex, or requests of ioctl."""


class FileUse(Struct, frozen=True):
    """The use of one file; all sockets count as one file, and so do all pipes."""

    name: str
    reads: int
    bytes_read: int
    writes: int
    bytes_written: int
    syncs: int
    seconds: float


class LockWaits(Struct, frozen=True):
    """Waits for the locks of one place in memory."""

    place: str
    """Variable or memory of the locks, such as ``gate in /usr/bin/program`` or ``[heap]``."""
    waits: int
    seconds: float


class SystemCalls(Struct, frozen=True):
    """The system calls of one run and its descendants."""

    method: Literal["tracepoints", "ptrace"]
    wall_s: float
    end: End
    processes: int
    threads: int
    programs: int
    """Number of programs that were executed, including the command itself."""
    waiting_s: float
    """Seconds that all threads together spent in calls that wait for others."""
    calls: tuple[Calls, ...]
    """Calls by name, those with the most seconds first."""
    files: tuple[FileUse, ...]
    locks: tuple[LockWaits, ...]
    unseen: tuple[str, ...]
    """Sentences about what could not be seen."""
    lost_records: int
    """Number of records that the kernel had no room for. Above 0, the counts are too low."""

    @property
    def is_complete(self) -> bool:
        """Whether no record was lost."""
        return self.lost_records == 0


def wrap_calls(process: Process, folder: Path, method: Method = "best") -> Process:
    """Return the process under the observer; raise `UnusableInput` if the observer is missing."""
    return under_observer(process, folder / _CALLS_FILE, "calls", "--method", method)


def read_calls(folder: Path) -> SystemCalls:
    """Read the observed system calls; raise `UnusableInput` if the observer wrote nothing."""
    return read_document(folder / _CALLS_FILE, SystemCalls)


FREQUENCY_HZ = 999
"""Samples per second; a round number such as 1000 could coincide with a timer."""

KERNEL_IS_HIDDEN = "the kernel's own time and stacks"
"""Beginning of the observer's remark that it may not observe the kernel."""

FunctionKind = Literal["user", "inlined", "python", "generated", "kernel", "size", "unknown"]
"""Kind of a function, by the origin of its name (`Function`)."""
SampledSource = Literal["profile", "page_faults", "waits"]
_OBSERVER_COMMANDS = {"profile": "profile", "page_faults": "faults", "waits": "waits"}
"""First argument of the observer, by source."""


class Function(Struct, frozen=True):
    """A function in a stack.

    A function of the kernel has the name of its entry point: a system call, ``page_fault``, or
    ``interrupt``. A function of kind ``generated`` has a name from the program's map file.
    A frame of kind ``size`` is the size of an allocated block.
    """

    name: str
    module: str
    """Name of the file that holds the function, without its folder."""
    kind: FunctionKind


class Stack(Struct, frozen=True):
    """One stack, and its weight."""

    frames: tuple[int, ...]
    """Indices in ``Stacks.frames``, the outermost frame first."""
    samples: int
    weight: float


class Stacks(Struct, frozen=True):
    """Different stacks, the heaviest first."""

    frames: tuple[Function, ...]
    stacks: tuple[Stack, ...]

    def weight(self) -> float:
        """Return the sum of the weights of all stacks."""
        return sum(stack.weight for stack in self.stacks)


class SampledStacks(Struct, frozen=True):
    """Sampled stacks of one run and its descendants."""

    source: SampledSource
    wall_s: float
    end: End
    samples: int
    total: float | None
    """Sum over all events, sampled or not, in the unit of the weights; ``None`` if unknown."""
    stacks: Stacks
    unseen: tuple[str, ...]

    @property
    def hides_kernel(self) -> bool:
        """Whether only the program's own code could be sampled."""
        return any(remark.startswith(KERNEL_IS_HIDDEN) for remark in self.unseen)


class StacksDocument(Stacks, frozen=True):
    """Stacks as the native observer writes them."""

    unseen: tuple[str, ...]


class _SampledDocument(StacksDocument, frozen=True):
    wall_s: float
    end: End
    samples: int
    total: float | None


def wrap_sampled(source: SampledSource, process: Process, folder: Path) -> Process:
    """Return the process under the observer; raise `UnusableInput` if the observer is missing."""
    # With this variable, CPython from 3.12 on writes a map file with the names of its functions.
    with_perf_map = Process(process.command, {"PYTHONPERFSUPPORT": "1", **process.environment})
    options = (_OBSERVER_COMMANDS[source], "--frequency", str(FREQUENCY_HZ))
    return under_observer(with_perf_map, folder / f"{source}.json", *options)


def read_sampled(source: SampledSource, folder: Path) -> SampledStacks:
    """Read the sampled stacks; raise `UnusableInput` if the observer wrote nothing."""
    fields = asdict(read_document(folder / f"{source}.json", _SampledDocument))
    return SampledStacks(
        source, stacks=Stacks(fields.pop("frames"), fields.pop("stacks")), **fields
    )
