"""The facts about a host, read once for each segment before its first trial."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from equipoise.measure.environment import cgroups, hardware, system
from equipoise.measure.environment.host import Host, collect


def snapshot(
    host: Host | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the environment of a segment, ready for JSON: by default of this host and process.

    Bytes, seconds and CPUs are plain numbers; ``"unlimited"`` and ``"none"`` stand for what is
    known to be absent. ``None`` stands for what could not be read; ``unknown`` has the reasons.
    """
    host = Host() if host is None else host
    environment = os.environ if environment is None else environment
    values, unknown = collect({**system.FACTS, **hardware.FACTS, **cgroups.FACTS}, host)
    return {
        **values,
        "variables": system.relevant_variables(environment),
        "variables_set_but_withheld": system.withheld_variables(environment),
        "environment_bytes": system.size_bytes(environment),
        "unknown": unknown,
    }
