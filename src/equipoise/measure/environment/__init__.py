"""The host that a campaign runs on, and what is observed beside each trial.

Files, in reading order:

- ``host``: reading /proc and /sys, the form of a fact, and `Unknown` with its reason.
- ``snapshot``: every fact about a host, as the ledger keeps it.
- ``hardware``: processor, memory, clock source, virtual machine.
- ``system``: kernel, C library, and environment variables.
- ``cgroups``: limits of the control groups that we live in.
- ``covariates``: load, pressure, steal, frequency and temperature beside each trial.
- ``libraries``: libraries that a command loads, tunables and BLAS cores that are in force.
"""

from equipoise.measure.environment.covariates import CovariateReader
from equipoise.measure.environment.host import Host, Unknown
from equipoise.measure.environment.libraries import Mapped, mapped_libraries
from equipoise.measure.environment.snapshot import snapshot

__all__ = ["CovariateReader", "Host", "Mapped", "Unknown", "mapped_libraries", "snapshot"]
