"""What a campaign ran on: read once for each sitting, before its first trial."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from equipoise.measure.surroundings import (
    clocks,
    containment,
    kernel,
    memory,
    processor,
    software,
    variables,
    virtualisation,
)
from equipoise.measure.surroundings.facts import Facts, collect
from equipoise.measure.surroundings.host import Host

SOURCES: tuple[Facts, ...] = (
    software.FACTS,
    kernel.FACTS,
    processor.FACTS,
    memory.FACTS,
    clocks.FACTS,
    virtualisation.FACTS,
    containment.FACTS,
)
"""A new source is one new file and one line here."""


def snapshot(
    host: Host | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The environment of a sitting, ready for JSON.

    Bytes, seconds and CPUs are plain numbers; ``"unlimited"`` and ``"none"`` say what is known
    to be absent. ``None`` is what could not be read, and ``unknown`` names the reason for each.

    Parameters
    ----------
    host
        Whose files are read; by default this host's.
    environment
        The environment that trials start from; by default our own.
    """
    host = Host() if host is None else host
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for facts in SOURCES:
        found, missing = collect(facts, host)
        values |= found
        unknown |= missing
    return {
        **values,
        "variables": variables.relevant(environment),
        "variables_set_but_withheld": variables.withheld(environment),
        "environment_bytes": variables.size_bytes(environment),
        "unknown": unknown,
    }
