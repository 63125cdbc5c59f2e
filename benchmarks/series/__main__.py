"""``python -m benchmarks.series``: suspicions in simulated series, beside other tools' changes.

A series has one value for each commit. One half of the series has no change, the other one step.
A change within `NEAR` commits of the step counts as found.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Sequence

import numpy as np
import ruptures

from benchmarks.peers import ASV, ASV_STEPS, OTAVA, Peer
from equipoise.stats.changes import LevelChange, level_changes

SD, STEP, MIN_EFFECT, NEAR = 0.01, 0.05, 1.0, 5
MIN_SEGMENT_VALUES = 5
Logs = np.ndarray
Noise = Callable[[np.random.Generator, int], Logs]


def normal(rng: np.random.Generator, count: int) -> Logs:
    """Independent values."""
    return rng.normal(0.0, SD, count)


def dependent(rng: np.random.Generator, count: int) -> Logs:
    """Neighbours are alike: an AR(1) process with coefficient 0.5."""
    noise = rng.normal(0.0, SD * math.sqrt(0.75), count)
    for place in range(1, count):
        noise[place] += 0.5 * noise[place - 1]
    return noise


def heavy(rng: np.random.Generator, count: int) -> Logs:
    """Student's t with 3 degrees of freedom."""
    return SD * rng.standard_t(3, count)


def spikes(rng: np.random.Generator, count: int) -> Logs:
    """One value in ten is 10 % too slow."""
    return normal(rng, count) + 0.1 * (rng.random(count) < 0.1)


def machines(rng: np.random.Generator, count: int) -> Logs:
    """Another machine, or another load of it, every 40 commits on average: 3 % between them."""
    moved = np.cumsum(rng.random(count) < 1.0 / 40.0)
    return normal(rng, count) + rng.normal(0.0, 0.03, count)[moved]


def drifting(rng: np.random.Generator, count: int) -> Logs:
    """The machine becomes 20 % slower along the series."""
    return normal(rng, count) + np.linspace(0.0, math.log(1.2), count)


NOISES: dict[str, Noise] = {
    "independent": normal,
    "AR 0.5": dependent,
    "t3": heavy,
    "spikes": spikes,
    "other machines": machines,
    "drift of 20 %": drifting,
}


def by_ruptures(logs: Logs) -> list[int]:
    """PELT with squared loss and the penalty of BIC, as its documentation has it."""
    sd = 1.4826 * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2.0)
    pelt = ruptures.Pelt(model="l2", min_size=MIN_SEGMENT_VALUES, jump=1).fit(logs)
    cuts = [0, *pelt.predict(pen=2.0 * sd**2 * math.log(len(logs)))]
    levels = [float(np.mean(logs[begin:end])) for begin, end in itertools.pairwise(cuts)]
    pairs = zip(cuts[1:], itertools.pairwise(levels), strict=False)
    least = math.log1p(MIN_EFFECT / 100.0)
    return [cut for cut, (before, after) in pairs if abs(after - before) > least]


def simulate(noise: Noise, count: int, runs: int, seed: int) -> tuple[list[Logs], list[int]]:
    """Series without a change, then as many with one; and the place of each step."""
    rng = np.random.default_rng(seed)
    stable = [noise(rng, count) for _ in range(runs)]
    places = [int(rng.integers(count // 4, 3 * count // 4)) for _ in range(runs)]
    stepped = [noise(rng, count) + STEP * (np.arange(count) >= place) for place in places]
    return stable + stepped, places


def summarise(changes: Sequence[Sequence[int]], places: Sequence[int]) -> tuple[str, str, str]:
    """Share of series without a change that have one, of steps that are found, and others there."""
    runs = len(places)
    false = sum(bool(one) for one in changes[:runs]) / runs
    near = [
        [abs(at - place) <= NEAR for at in found]
        for found, place in zip(changes[runs:], places, strict=True)
    ]
    found = sum(any(one) for one in near) / runs
    others = sum(len(one) - any(one) for one in near) / runs
    return f"{100 * false:.1f}", f"{100 * found:.1f}", f"{others:.2f}"


def held(changes: Sequence[Sequence[LevelChange]], places: Sequence[int]) -> tuple[str, str]:
    """Share of found steps within their range, and the median number of commits in a range."""
    ranges = [
        min(found, key=lambda one: abs(one.place - place), default=None)
        for found, place in zip(changes, places, strict=True)
    ]
    near = [
        (one.first < place <= one.last, one.last - one.first)
        for one, place in zip(ranges, places, strict=True)
        if one is not None and abs(one.place - place) <= NEAR
    ]
    if not near:
        return "", ""
    return (
        f"{100 * np.mean([inside for inside, _ in near]):.1f}",
        f"{np.median([w for _, w in near]):.0f}",
    )


def main() -> int:
    """Print a table for each length; 1 if a claim of docs/methods/old-series.md fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.series", description=__doc__)
    parser.add_argument("--series", type=int, default=200, help="of each kind, for each row")
    parser.add_argument("--lengths", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-peers", action="store_true", help="only Equipoise and ruptures")
    options = parser.parse_args()
    peers: tuple[Peer, ...] = () if options.no_peers else (OTAVA, ASV_STEPS, ASV)
    broken: list[str] = []
    for count in options.lengths:
        print(f"### {count} commits, a step of 5 %, sd 1 %\n")
        print("| noise | tool | false alarm, % | found, % | others | held, % | commits |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, noise in NOISES.items():
            series, places = simulate(noise, count, options.series, options.seed)
            values = [np.exp(one) for one in series]
            ours = [level_changes(one, MIN_EFFECT) for one in values]
            first = summarise([[one.place for one in found] for found in ours], places)
            coverage = held(ours[options.series :], places)
            _row(name, "Equipoise", *first, *coverage)
            _row(name, "ruptures", *summarise([by_ruptures(one) for one in series], places))
            for peer in peers:
                _row(name, peer.name, *summarise(peer.changes(values), places))
            is_stable = noise not in (machines, drifting)
            # 5 % and three Monte Carlo errors.
            at_most = 5.0 + 300.0 * math.sqrt(0.05 * 0.95 / options.series)
            if is_stable and float(first[0]) > at_most:
                broken.append(f"{name}, {count} commits: {first[0]} % have a suspicion")
        print()
    for claim in broken:
        print(f"broken claim: {claim}", file=sys.stderr)
    return 1 if broken else 0


def _row(noise: str, tool: str, *cells: str) -> None:
    print(f"| {' | '.join((noise, tool, *cells))} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
