"""A campaign killed as soon as it has its folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from equipoise.measure.scratch import scratch_folder


def killed_campaign() -> Path:
    """Kill a campaign and return its folder, which is in the folder for temporary files."""
    reading, writing = os.pipe()
    campaign = os.fork()
    if campaign == 0:
        with scratch_folder() as folder:
            os.write(writing, os.fsencode(folder))
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(writing)
    with open(reading, "rb") as name:
        folder = Path(os.fsdecode(name.read()))
    assert os.WTERMSIG(os.waitpid(campaign, 0)[1]) == signal.SIGKILL
    return folder
