"""Tasks that the tests of strata run on a worker, which must be able to import them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from equipoise.cluster.strata import analyse_stratum


def dies_once(marker: str, request: bytes) -> bytes:
    """Kill the worker where no worker has died yet; judge the stratum otherwise."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return analyse_stratum(request)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the worker was killed")
