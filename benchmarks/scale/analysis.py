"""Time of a fleet's statistics, by hosts and by blocks."""

from __future__ import annotations

import numpy as np

from benchmarks.fleet.fleets import SD, answers, hosts_of
from benchmarks.scale.growth import Growth, seconds_of
from tests.stats.simulated import campaign, white

BLOCKS = 80
HOSTS = 8
HOST_SIZES = (8, 32, 128, 512)
BLOCK_SIZES = (40, 160, 640, 2560)


def growths() -> list[Growth]:
    """Return the CPU time of all answers on one comparison, from the blocks of every host."""
    return [
        Growth(
            f"statistics of a fleet, {BLOCKS} blocks a host, s",
            "hosts",
            HOST_SIZES,
            tuple(_seconds(hosts, BLOCKS) for hosts in HOST_SIZES),
        ),
        Growth(
            f"statistics of a fleet of {HOSTS} hosts, s",
            "blocks a host",
            BLOCK_SIZES,
            tuple(_seconds(HOSTS, blocks) for blocks in BLOCK_SIZES),
        ),
    ]


def _seconds(hosts: int, blocks: int) -> float:
    rng = np.random.default_rng(hosts)
    fleet = hosts_of([campaign(white(SD), rng, blocks, 0.01) for _ in range(hosts)])
    return seconds_of(lambda: answers(fleet))
