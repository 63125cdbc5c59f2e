"""Time on a processor, by user and kernel stacks; weights are seconds.

The native observer (``crates/evidence``) unwinds and names the stacks after the run.
"""

from __future__ import annotations

from pathlib import Path

from equipoise.why.evidence.observed import Process
from equipoise.why.evidence.sampled import Sampled, read_sampled, wrap_sampled


def wrap(process: Process, folder: Path) -> Process:
    """The process under the observer, which writes into the folder.

    Raises
    ------
    UnusableInput
        The observer is missing.
    """
    return wrap_sampled("profile", process, folder)


def read(folder: Path) -> Sampled:
    """What the observer wrote into the folder.

    Raises
    ------
    UnusableInput
        It wrote nothing.
    """
    return read_sampled("profile", folder)
