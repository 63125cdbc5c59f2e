"""Running other people's benchmark tools, for the tests of this room."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAX_S = 900
"""Many times what any of them takes on a loaded machine."""


def ran(
    *command: str | Path, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one tool to its end in this folder, whatever its exit status."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        timeout=MAX_S,
    )


def printed_by(
    *command: str | Path, folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Stdout of a tool that must succeed."""
    done = ran(*command, folder=folder, environment=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def decoded(path: Path) -> Any:
    """The file as JSON, read by another reader than ours."""
    return json.loads(path.read_text())
