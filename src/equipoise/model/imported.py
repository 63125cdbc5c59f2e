"""Where the trials of an imported run come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Order = Literal["in blocks", "one after the other", "mixed"]
"""How the trials of the conditions lay in time, as far as the files tell."""


@dataclass(frozen=True, slots=True)
class Source:
    """The files of other tools that a run was imported from."""

    format: str
    """A name of `equipoise.interop.formats`."""
    tool: str | None
    """The tool and its version, such as ``hyperfine 2.0.0``; ``None`` if no file tells."""
    files: tuple[str, ...]
    """As they were named on the command line."""
    order: Order
    no_series: tuple[str, ...] = ()
    """Metrics whose iterations are no course in time, so that no warm-up is looked for in them."""
