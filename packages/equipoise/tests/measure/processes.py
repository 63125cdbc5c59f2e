"""The state of processes that tests start."""

from __future__ import annotations

from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process runs; zombies and processes being removed do not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False
