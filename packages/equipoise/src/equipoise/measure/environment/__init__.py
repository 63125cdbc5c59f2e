"""Read the facts of a host for each campaign, and the covariates of each trial.

Files, in reading order:

- ``system``: reads files of /proc and /sys; kernel, C library, and environment variables.
- ``hardware``: processor, memory, clock source, virtual machine.
- ``cgroups``: limits of our own control groups.
- ``covariates``: load, pressure, steal, frequency and temperature around each trial.
- ``libraries``: libraries that a command loads, and the settings of its C library and BLAS.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from equipoise.measure.environment import cgroups, hardware, system
from equipoise.measure.environment.covariates import CovariateReader
from equipoise.measure.environment.libraries import MappedLibraries, mapped_libraries
from equipoise.measure.environment.system import Host, Unknown, read_facts, readable
from equipoise.model.redaction import TUNING_VARIABLES

__all__ = ["CovariateReader", "Host", "MappedLibraries", "Unknown", "mapped_libraries", "snapshot"]


def snapshot(
    host: Host | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the facts of a host and of environment variables, ready for JSON.

    The defaults are this host and the variables of this process. Equipoise calls this function
    before the first trial of each segment of a campaign.

    Bytes, seconds and CPUs are plain numbers. A limit that does not exist is ``"unlimited"``;
    another thing that does not exist is ``"none"``. An unreadable fact is ``None``, and ``unknown``
    has the reason.
    """
    environment = os.environ if environment is None else environment
    facts = {**system.FACTS, **hardware.FACTS, **cgroups.FACTS}
    values, unknown = read_facts(facts, Host() if host is None else host)
    # An environment may contain secrets, and ledgers are shared.
    tuning_variables = sorted(TUNING_VARIABLES & environment.keys())
    return {
        **values,
        "variables": {name: readable(environment[name]) for name in tuning_variables},
        "variables_set_but_withheld": sorted(system.WITHHELD_VARIABLES & environment.keys()),
        "environment_bytes": system.environment_bytes(environment),
        "unknown": unknown,
    }
