"""Processes that tests start, looked at from outside."""

from __future__ import annotations

from pathlib import Path


def is_running(pid: int) -> bool:
    """A zombie that nobody reaps runs no more."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
