"""A cause that a rule found in what differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from equipoise.explain.difference.result import Difference
from equipoise.model.interval import Interval
from equipoise.model.why import Kind

Part = tuple[Literal["door", "function", "wait"], str]
"""A part of the extra time: a door of the kernel, a function itself (``name`` or ``name in
module``), a door or lock that was waited at. What one cause has claimed, no later one counts."""


@dataclass(frozen=True, slots=True)
class Found:
    """One cause, before anything was changed on purpose."""

    cause: str
    kind: Kind
    evidence: dict[str, Any]
    """Names the thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``), with counts
    and seconds as ``{"baseline": …, "candidate": …}``."""
    seconds: float
    """Of the slower condition's extra time that it accounts for."""
    seconds_ci: Interval
    words: str
    claims: frozenset[Part]


Rule = Callable[[Difference], tuple[Found, ...]]
