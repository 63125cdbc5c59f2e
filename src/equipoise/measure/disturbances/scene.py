"""What the checks look at: a host, an environment, a folder, and half a second of activity."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from equipoise.measure.disturbances.window import Window
from equipoise.measure.surroundings.host import Host
from equipoise.model.host import Disturbance

FreeSpace = Callable[[Path], os.statvfs_result]


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a check may look at; tests plant each of its parts."""

    host: Host
    window: Window
    environment: Mapping[str, str]
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Where temporary files are made."""
    free_space: FreeSpace = os.statvfs
    we_are_root: bool = False


Check = Callable[[Scene], Iterable[Disturbance]]
"""Finds disturbances of one kind; raises ``Unknown`` if it cannot tell."""
