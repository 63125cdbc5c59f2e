"""The form of a fact: a name, and a function that reads it or says why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from equipoise.measure.surroundings.host import Host, Unknown

Fact = Callable[[Host], Any]
"""Gives something that JSON can hold, never ``None``; raises ``Unknown``."""
Facts = Mapping[str, Fact]

UNLIMITED = "unlimited"
NONE = "none"
"""What is known to be absent; ``None`` is kept for what is not known."""


def collect(facts: Facts, host: Host) -> tuple[dict[str, Any], dict[str, str]]:
    """Read all facts; what cannot be read is ``None``, and its reason stands beside."""
    values: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for name, read in facts.items():
        try:
            values[name] = read(host)
        except Unknown as reason:
            values[name] = None
            unknown[name] = str(reason)
    return values, unknown
