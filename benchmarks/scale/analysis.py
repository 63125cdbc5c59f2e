"""Time of a fleet's statistics, by hosts and by blocks."""

from __future__ import annotations

import math
import statistics

import numpy as np

from benchmarks.fleet.fleets import SD, Scenario, answers, blocks_of, effects_of, hosts_of
from benchmarks.scale.growth import Growth, seconds_of
from packages.equipoise.tests.stats.simulated import campaign, white

BLOCKS = 80
HOSTS = 8
HOST_SIZES = (8, 32, 128, 512)
BLOCK_SIZES = (40, 160, 640, 2560)
WIDTH_SIZES = (4, 16, 64, 256)
FLEETS = 12


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


def width_growths() -> list[Growth]:
    """Return the median width of the mean's interval, with equal and with unequal blocks."""
    return [
        Growth(title, "hosts", WIDTH_SIZES, tuple(_width(hosts, unequal) for hosts in WIDTH_SIZES))
        for title, unequal in (
            (f"width of the mean's interval, {BLOCKS} blocks a host, %", False),
            ("width of the mean's interval, 20 to 140 blocks a host, %", True),
        )
    ]


def _width(hosts: int, unequal: bool) -> float:
    scenario = Scenario(hosts, 0.02, unequal=unequal)
    widths = []
    for seed in range(FLEETS):
        rng = scenario.generator(seed)
        mean = answers(hosts_of(blocks_of(scenario, rng, effects_of(scenario, rng, hosts)))).mean
        widths.append(100.0 * math.expm1(mean.bounds.high - mean.bounds.low))
    return statistics.median(widths)


def _seconds(hosts: int, blocks: int) -> float:
    rng = np.random.default_rng(hosts)
    fleet = hosts_of([campaign(white(SD), rng, blocks, 0.01) for _ in range(hosts)])
    return seconds_of(lambda: answers(fleet))
