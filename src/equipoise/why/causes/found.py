"""A cause that a rule found in what differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from equipoise.model.interval import Interval
from equipoise.model.why import Kind

Part = tuple[Literal["door", "function", "wait"], str]
"""A part of the extra time: a door of the kernel, a function itself (``name in module``), a door
at which threads waited. What one cause has claimed, no later one counts."""


@dataclass(frozen=True, slots=True)
class Found:
    """One cause, before anything was changed on purpose."""

    cause: str
    kind: Kind
    evidence: dict[str, Any]
    """Names the thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``), with counts
    and seconds as ``{"baseline": …, "candidate": …}``."""
    seconds: float
    """Of the gap that it accounts for."""
    seconds_ci: Interval
    words: str
    claims: frozenset[Part]
    waited_s: float = 0.0
    """How much of the seconds is waiting."""
