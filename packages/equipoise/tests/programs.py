"""Programs that a test runs to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def finished(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; return its status and its output as text.

    The options are those of `subprocess.run`.
    """
    usual = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    ended: subprocess.CompletedProcess[str] = subprocess.run(command, **{**usual, **options})
    return ended
