"""The host of a campaign, and the covariates of each trial.

Files, in reading order:

- ``system``: reading /proc and /sys, facts, and `Unknown` with its reason; kernel, C library, and
  environment variables.
- ``hardware``: processor, memory, clock source, virtual machine.
- ``cgroups``: limits of our own control groups.
- ``covariates``: load, pressure, steal, frequency and temperature around each trial.
- ``libraries``: libraries that a command loads, tunables and BLAS cores that are in force.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from equipoise.measure.environment import cgroups, hardware, system
from equipoise.measure.environment.covariates import CovariateReader
from equipoise.measure.environment.libraries import Mapped, mapped_libraries
from equipoise.measure.environment.system import Host, Unknown, collect, readable
from equipoise.model.redaction import TUNING_VARIABLES

__all__ = ["CovariateReader", "Host", "Mapped", "Unknown", "mapped_libraries", "snapshot"]


def snapshot(
    host: Host | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the environment of a segment, ready for JSON; by default that of this process.

    It is read once for each segment, before its first trial.

    Bytes, seconds and CPUs are plain numbers; ``"unlimited"`` and ``"none"`` stand for known
    absence. ``None`` stands for an unreadable fact; ``unknown`` has the reasons.
    """
    environment = os.environ if environment is None else environment
    facts = {**system.FACTS, **hardware.FACTS, **cgroups.FACTS}
    values, unknown = collect(facts, Host() if host is None else host)
    # An environment may contain secrets, and ledgers are shared.
    tuning = sorted(TUNING_VARIABLES & environment.keys())
    return {
        **values,
        "variables": {name: readable(environment[name]) for name in tuning},
        "variables_set_but_withheld": sorted(system.WITHHELD & environment.keys()),
        "environment_bytes": system.size_bytes(environment),
        "unknown": unknown,
    }
