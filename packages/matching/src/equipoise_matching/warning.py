"""The warning about an answer."""

from __future__ import annotations

from msgspec import Struct


class AnalysisWarning(Struct, frozen=True):
    """A reason to doubt an answer, and a hint."""

    code: str
    """Stable name of the reason, such as ``unbalanced``."""
    summary: str
    hint: str
