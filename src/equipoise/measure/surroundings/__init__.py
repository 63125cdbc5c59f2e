"""What a campaign runs on, and what is observed beside each trial.

One file a source: ``snapshot`` collects the facts of a host, ``covariates`` what changes from
trial to trial, ``libraries`` what a condition maps.
"""

from equipoise.measure.surroundings.covariates.reader import CovariateReader
from equipoise.measure.surroundings.host import Host, Unknown
from equipoise.measure.surroundings.libraries import Mapped, mapped_libraries
from equipoise.measure.surroundings.snapshot import snapshot

__all__ = ["CovariateReader", "Host", "Mapped", "Unknown", "mapped_libraries", "snapshot"]
