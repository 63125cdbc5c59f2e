"""Hosts by Slurm: a scheduler on the login node, and one job on each of three whole nodes.

Run this on the login node and leave it running; it prints the address for ``--cluster``::

    pip install 'equipoise[cluster]' dask-jobqueue
    python slurm.py
"""

from __future__ import annotations

import signal
from pathlib import Path

import dask
from dask_jobqueue import SLURMCluster

NODES = 3
SHARED = Path.home() / "equipoise"
"""Folder with what is measured; login node and compute nodes share it."""
PRIVATE = Path.home() / ".local/state/equipoise/dask"
"""Folder for Dask's own files. All users share the temporary folder, and Dask imports from it."""


def make_cluster() -> SLURMCluster:
    """Return a cluster without jobs yet."""
    return SLURMCluster(
        queue="bench",
        walltime="04:00:00",
        cores=4,
        memory="4 GB",
        processes=1,
        # The node is measured: nobody else may be on it.
        job_extra_directives=["--exclusive", "--nodes=1"],
        job_script_prologue=[
            f"cd {SHARED}",
            # The ledger and the host's identity stay on a disk of the node.
            "export EQUIPOISE_LEDGER=/var/tmp/$USER/equipoise/ledger.db",
            "export XDG_STATE_HOME=/var/tmp/$USER/equipoise/state",
            "export EQUIPOISE_HOST=$SLURMD_NODENAME",
            # Only the owner may write there: it belongs to no other user.
            'mkdir -p -m 700 "/var/tmp/$USER" && test -O "/var/tmp/$USER" || exit 1',
            'chmod 700 "/var/tmp/$USER" && mkdir -p "$XDG_STATE_HOME"',
        ],
        local_directory=str(PRIVATE),
        scheduler_options={"port": 8786, "dashboard": False},
    )


if __name__ == "__main__":
    dask.config.set({"temporary-directory": str(PRIVATE)})
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with make_cluster() as cluster:
        cluster.scale(jobs=NODES)
        print(f"equipoise compare --cluster {cluster.scheduler_address} 'COMMAND' 'COMMAND'")
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("the jobs end")
