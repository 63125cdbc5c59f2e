"""Real clusters of Dask on this machine, for the tests of what runs on them."""

from __future__ import annotations

import gc
import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def local_cluster(workers: int, folder: Path) -> Iterator[str]:
    """The address of a scheduler with so many worker processes, which end with the block."""
    dask, distributed = (importlib.import_module(name) for name in ("dask", "distributed"))
    # What is sent to a worker that was killed would be waited for half a minute.
    impatient = {"distributed.comm.timeouts.connect": "5s"}
    with (
        litter_collected(),
        dask.config.set(impatient),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            # The usual port is taken while another test runs at the same time.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            local_directory=str(folder),
            silence_logs="CRITICAL",
        ) as cluster,
    ):
        yield cluster.scheduler_address


@contextmanager
def encrypted_scheduler(certificate: Path, key: Path) -> Iterator[str]:
    """The address of a scheduler without workers, in this process, that takes only TLS.

    Parameters
    ----------
    certificate
        That of the scheduler, and of the authority by which it checks others.
    """
    distributed = importlib.import_module("distributed")
    security = distributed.Security(
        tls_ca_file=str(certificate),
        tls_scheduler_cert=str(certificate),
        tls_scheduler_key=str(key),
        tls_client_cert=str(certificate),
        tls_client_key=str(key),
        require_encryption=True,
    )
    with (
        litter_collected(),
        distributed.LocalCluster(
            n_workers=0,
            processes=False,
            protocol="tls://",
            host="127.0.0.1",
            security=security,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs="CRITICAL",
        ) as cluster,
    ):
        yield cluster.scheduler_address


@contextmanager
def litter_collected() -> Iterator[None]:
    """Collects the connections that Dask leaves half open, here and with their warnings silent.

    Else the collector finds them in a later test, whose failure they would then be.
    """
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
