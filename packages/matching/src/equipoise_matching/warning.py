"""What speaks against an answer: a finding and what to do about it."""

from __future__ import annotations

from msgspec import Struct


class AnalysisWarning(Struct, frozen=True):
    """A warning: what, and what to do about it."""

    code: str
    summary: str
    hint: str
