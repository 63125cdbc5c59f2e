"""Processes that tests start, looked at from outside."""

from __future__ import annotations

from pathlib import Path


def is_running(pid: int) -> bool:
    """A zombie that nobody reaps runs no more, and neither does what is just being removed."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False
