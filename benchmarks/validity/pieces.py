"""Many campaigns of several scenarios; the same answer whatever the number of workers.

Campaign k of a scenario has its own random source, made of the seed, the scenario's name and k.
"""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import numpy as np

CHUNK = 25
"""Campaigns in one piece of work."""

T = TypeVar("T")
Piece = Callable[[str, int, int, int], list[T]]
"""Simulates a scenario, by name, from one campaign up to another, with a seed."""


def in_pieces(
    counts: Mapping[str, int],
    piece: Piece[T],
    *,
    seed: int,
    workers: int,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, list[T]]:
    """Outcomes of each scenario, by its name, in the order of the campaigns.

    Parameters
    ----------
    counts
        Campaigns of each scenario.
    piece
        A function of a module: other processes run it.
    seed
        From 0 up.
    workers
        Processes; with 1 everything runs in this one.
    progress
        Is told the name of each scenario that is done.
    """
    outcomes: dict[str, list[T]] = {}
    if workers == 1:
        for name, count in counts.items():
            outcomes[name] = piece(name, 0, count, seed)
            progress(name)
        return outcomes
    # Not forked: whoever calls may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        submitted = {
            name: [
                pool.submit(piece, name, start, min(start + CHUNK, count), seed)
                for start in range(0, count, CHUNK)
            ]
            for name, count in counts.items()
        }
        for name, parts in submitted.items():
            outcomes[name] = [outcome for part in parts for outcome in part.result()]
            progress(name)
    return outcomes


def source(seed: int, name: str, campaign: int) -> np.random.SeedSequence:
    """Return the random source of one campaign."""
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()), campaign))
