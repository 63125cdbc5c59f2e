"""Sampled stacks with weights: seconds on a processor, seconds of waiting, page faults.

The native observer (``crates/evidence``) unwinds and names the stacks after the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from equipoise.why.evidence.process import End, Process, read_document, under_observer

FREQUENCY_HZ = 999

KERNEL_IS_HIDDEN = "the kernel's own time and stacks"
"""Beginning of the observer's remark where it may not look into the kernel."""

Kind = Literal["user", "inlined", "python", "told", "kernel", "size", "unknown"]
SampledSource = Literal["profile", "page_faults", "waits"]
_COMMANDS = {"profile": "profile", "page_faults": "faults", "waits": "waits"}


class Frame(Struct, frozen=True):
    """A function in a stack.

    A frame of the kernel is named by its entry point: a system call, ``page_fault``,
    ``interrupt``. A frame of kind ``told`` is named by what made the code while it ran; a frame
    of kind ``size`` is the size of an allocated block.
    """

    name: str
    module: str
    """Name of the file that holds the function, without its folder."""
    kind: Kind


class Stack(Struct, frozen=True):
    """One stack, and its weight."""

    frames: tuple[int, ...]
    """Places in ``Stacks.frames``, the outermost first."""
    samples: int
    weight: float


class Stacks(Struct, frozen=True):
    """Stacks, each once, the heaviest first."""

    frames: tuple[Frame, ...]
    stacks: tuple[Stack, ...]

    def weight(self) -> float:
        """Return the sum of all weights."""
        return sum(stack.weight for stack in self.stacks)


class Sampled(Struct, frozen=True):
    """Sampled stacks of one run and its descendants."""

    source: SampledSource
    wall_s: float
    end: End
    samples: int
    total: float | None
    """All that happened, whether sampled or not, in the unit of the weights."""
    stacks: Stacks
    unseen: tuple[str, ...]
    """Sentences about what could not be seen."""

    @property
    def hides_kernel(self) -> bool:
        """Whether only the program's own code could be sampled."""
        return any(remark.startswith(KERNEL_IS_HIDDEN) for remark in self.unseen)


class StacksDocument(Stacks, frozen=True):
    """Stacks as the native observer writes them."""

    unseen: tuple[str, ...]


class _Document(StacksDocument, frozen=True):
    wall_s: float
    end: End
    samples: int
    total: float | None


def wrap_sampled(source: SampledSource, process: Process, folder: Path) -> Process:
    """Return the process under the observer, which writes into the folder.

    CPython publishes where its functions lie, if its version can. Raise `UnusableInput` if the
    observer is missing.
    """
    telling = Process(process.command, {"PYTHONPERFSUPPORT": "1", **process.environment})
    options = (_COMMANDS[source], "--frequency", str(FREQUENCY_HZ))
    return under_observer(telling, folder / f"{source}.json", *options)


def read_sampled(source: SampledSource, folder: Path) -> Sampled:
    """Read what the observer wrote into the folder.

    Raise `UnusableInput` if the observer wrote nothing.
    """
    fields = asdict(read_document(folder / f"{source}.json", _Document))
    return Sampled(source, stacks=Stacks(fields.pop("frames"), fields.pop("stacks")), **fields)
