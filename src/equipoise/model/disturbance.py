"""What disturbs measurements on a host, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["disturbs", "weakens", "lacks"]
"""``disturbs``: trials are slowed by something else now. ``weakens``: a setting that adds noise
or narrows what is measured. ``lacks``: something that the host does not offer at all."""

SEVERITIES: tuple[Severity, ...] = ("disturbs", "weakens", "lacks")
"""Worst first."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One thing that disturbs measurements: what, and the command that mends it (rule 8)."""

    code: str
    severity: Severity
    summary: str
    hint: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What an examination of a host found."""

    disturbances: tuple[Disturbance, ...]
    """Worst first."""
    checked: tuple[str, ...]
    """The checks that gave an answer."""
    unchecked: dict[str, str] = field(default_factory=dict)
    """The checks that could not, each with the reason (rule 7)."""
