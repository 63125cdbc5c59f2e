"""What the sources that sample stacks share; one of them a file beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from equipoise.why.evidence.observed import End, Process, evidence_program, read_document
from equipoise.why.evidence.stacks import Frame, Stack, Stacks

VERSION = 1
FREQUENCY_HZ = 999

KERNEL_IS_HIDDEN = "the kernel's own time and stacks"
"""So begins what the observer says where it may not look into the kernel."""

Source = Literal["profile", "page_faults", "waits"]
_COMMANDS: dict[Source, str] = {"profile": "profile", "page_faults": "faults", "waits": "waits"}


@dataclass(frozen=True, slots=True)
class Sampled:
    """Stacks of one run and its descendants, by samples."""

    source: Source
    wall_s: float
    end: End
    samples: int
    total: float | None
    """All that happened, whether sampled or not, in the unit of the weights."""
    stacks: Stacks
    unseen: tuple[str, ...]
    """What could not be seen, in words."""

    @property
    def hides_kernel(self) -> bool:
        """Whether only the program's own code could be sampled."""
        return any(words.startswith(KERNEL_IS_HIDDEN) for words in self.unseen)


@dataclass(frozen=True, slots=True)
class _Document:
    wall_s: float
    end: End
    samples: int
    total: float | None
    frames: tuple[Frame, ...]
    stacks: tuple[Stack, ...]
    unseen: tuple[str, ...]


def wrap_sampled(source: Source, process: Process, folder: Path) -> Process:
    """The process under the observer, which writes into the folder.

    CPython is asked to tell where its functions lie, if it can.

    Raises
    ------
    UnusableInput
        The observer is missing.
    """
    observer = (str(evidence_program()), _COMMANDS[source], "--frequency", str(FREQUENCY_HZ))
    output = ("--output", str(folder / f"{source}.json"), "--")
    environment = {"PYTHONPERFSUPPORT": "1", **process.environment}
    return Process((*observer, *output, *process.command), environment)


def read_sampled(source: Source, folder: Path) -> Sampled:
    """What the observer wrote into the folder.

    Raises
    ------
    UnusableInput
        It wrote nothing.
    """
    document = read_document(folder / f"{source}.json", _Document, VERSION)
    return Sampled(
        source=source,
        wall_s=document.wall_s,
        end=document.end,
        samples=document.samples,
        total=document.total,
        stacks=Stacks(document.frames, document.stacks),
        unseen=document.unseen,
    )
