"""The pilot of ``--duet``: whether trials that run at once disturb each other, and are sharper.

The pilot comes after the warm-up. It runs the conditions in turns and at once, alternately
(`Plan.runs_at_once`), and no verdict uses its trials. If two trials disturb each other, the
campaign is refused: its ratio would be about programs that share a lock, a cache or the memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from equipoise.campaign.blocks import block_seconds
from equipoise.measure.environment.covariates import CPU_PRESSURE, RUN_DELAY
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Plan
from equipoise.model.record import CampaignWarning, Trial
from equipoise.shared.spelling import option
from equipoise.stats.arrays import FloatArray
from equipoise.stats.duet import MIN_PAIRS, Gain, Slowdown, gain, slowdown

MAX_PILOT_PAIRS = 10
"""Number of blocks in turns, and of blocks at once."""
MIN_PILOT_PAIRS = MIN_PAIRS
"""Number of pairs from which on a long pilot ends."""
MAX_PILOT_BUDGET_SHARE = 0.25
"""Fraction of the budget after which a pilot is long."""
MAX_SLOWDOWN = 1.05
"""Slowdown of a trial by the other that is still accepted."""
MAX_SLOWDOWN_BESIDE_NOISE = 1.25
"""The same for the time that is not CPU time, if other processes use the CPUs."""
BUSY_SHARE = 0.05
"""Fraction of the time of a trial at once from which on waits for a CPU show a busy host."""
LESS_SHARP_WARNING = "duet_less_sharp"
"""Code of the warning that trials in turns are sharper."""
DISTURBED_WARNING = "duet_disturbed"
"""Code of the warning about a campaign that its pilot refused."""


Shared = Literal["core or memory", "CPUs", "lock or device"]
"""Resource for which two trials compete. If their CPU time does not grow, it is the CPUs themselves
or, if a program needs no more than its own, anything else that it waits for."""


_Row = tuple[Sequence[Trial], Sequence[Trial]]
"""Trials of a block in turns and of the next block, at once."""


class Disturbance(Struct, frozen=True):
    """A condition whose trials take longer while those of the other condition run."""

    condition: int
    """0 for the baseline, 1 for the candidate."""
    factor: float
    """Typical time at once over time in turns."""
    shared: Shared


class PilotResult(Struct, frozen=True):
    """Result of the pilot for one contrast."""

    contrast: Contrast
    pairs: int
    """Number of blocks in turns, and of blocks at once."""
    slowdown: Slowdown | None
    """Slowdown of the wall time, both conditions together; ``None`` if too few pairs have both."""
    disturbance: Disturbance | None
    gain: Gain | None
    """``None`` if the spread of the log ratios is not known."""


class RefusedByPilot(UnusableInput):
    """Trials that run at once disturb each other, so a campaign is refused."""


def pilot_results(plan: Plan, trials: Iterable[Trial]) -> tuple[PilotResult, ...]:
    """Return the result for each contrast; empty if no block ran in turns, or none at once.

    Trials that are not of the pilot are left out.
    """
    blocks: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.phase == "warmup" and trial.block > plan.warmup_blocks:
            blocks[trial.block].append(trial)
    pairs: list[_Row] = [
        (blocks[number], blocks[number + 1])
        for number in sorted(blocks)
        if not plan.runs_at_once("warmup", number) and number + 1 in blocks
    ]
    cpu_count = min(map(len, plan.measure.cpu_sets), default=0)
    results = (_pilot_result(contrast, pairs, cpu_count) for contrast in plan.contrasts)
    return tuple(result for result in results if result is not None)


def _pilot_result(contrast: Contrast, pairs: Sequence[_Row], cpu_count: int) -> PilotResult | None:
    """Return the result for a contrast; ``None`` without a pair in which both conditions ran.

    ``cpu_count`` is the number of CPUs of each trial at once.
    """
    rows: list[_Row] = []
    for in_turns, at_once in pairs:
        turns, both = ({trial.condition: trial for trial in block} for block in (in_turns, at_once))
        if set(contrast.pair) <= turns.keys() & both.keys():
            rows.append(
                (
                    [turns[index] for index in contrast.pair],
                    [both[index] for index in contrast.pair],
                )
            )
    if not rows:
        return None
    wall = _values(rows, lambda trial: trial.accounting.wall_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log(wall[:, :, 1] / wall[:, :, 0])
    seconds = np.mean([[block_seconds(block) for block in row] for row in rows], axis=0)
    return PilotResult(
        contrast,
        len(rows),
        slowdown(wall[:, 0], wall[:, 1]),
        _disturbance(rows, wall, cpu_count),
        gain(log_ratios[:, 0], log_ratios[:, 1], float(seconds[0]), float(seconds[1])),
    )


def _disturbance(rows: Sequence[_Row], wall: FloatArray, cpu_count: int) -> Disturbance | None:
    """Return how the two conditions disturb each other; ``None`` if they do not.

    On a busy host, trials at once also wait for CPUs that other processes use. This noise is the
    same for both and is not a disturbance, so its main part is subtracted.
    """
    cpu = _values(rows, lambda trial: trial.accounting.cpu_s)
    waiting = np.nan_to_num(_values(rows, lambda trial: trial.covariates.get(RUN_DELAY)))
    running = wall - waiting
    # In a program that mostly sleeps, a growth of its CPU time hardly counts.
    alone = np.fmax(running, cpu)[:, :1]
    grown = alone + cpu - cpu[:, :1]
    is_busy = _is_host_busy(rows, wall)
    checks: tuple[tuple[Shared, FloatArray, float], ...] = (
        ("core or memory", grown, MAX_SLOWDOWN),
        ("lock or device", running, MAX_SLOWDOWN_BESIDE_NOISE if is_busy else MAX_SLOWDOWN),
    )
    for shared, times, limit in checks:
        by_condition = [slowdown(times[:, 0, index], times[:, 1, index]) for index in (0, 1)]
        both = slowdown(times[:, 0], times[:, 1])
        if any(found is not None and found.low > limit for found in (both, *by_condition)):
            factors = [0.0 if found is None else found.factor for found in by_condition]
            slowed = int(factors[1] > factors[0])
            needed_cpus = float(np.nanmedian(cpu[:, 0, slowed] / wall[:, 0, slowed]))
            if shared == "lock or device" and needed_cpus > MAX_SLOWDOWN * cpu_count:
                shared = "CPUs"
            return Disturbance(slowed, max(factors), shared)
    return None


def _is_host_busy(rows: Sequence[_Row], wall: FloatArray) -> bool:
    """Return whether processes waited for a CPU while trials ran at once, each on its own."""
    waits = (
        _values(rows, lambda trial: trial.covariates.get(RUN_DELAY)),
        _values(rows, lambda trial: trial.covariates.get(CPU_PRESSURE)),
    )
    shares = (np.nan_to_num(np.fmax(*waits)[:, 1]) / wall[:, 1]).ravel()
    shares = shares[np.isfinite(shares)]
    return bool(shares.size) and float(np.median(shares)) > BUSY_SHARE


def _values(rows: Sequence[_Row], value_of: Callable[[Trial], float | None]) -> FloatArray:
    """Return n values, in turns and at once, of two conditions: shape (n, 2, 2); NaN if unknown."""

    def value(trial: Trial) -> float:
        found = None if trial.timed_out else value_of(trial)
        return np.nan if found is None else found

    return np.array([[[value(trial) for trial in block] for block in row] for row in rows])


def pilot_warnings(plan: Plan, trials: Iterable[Trial]) -> tuple[CampaignWarning, ...]:
    """Return the warnings of a pilot.

    Raise `RefusedByPilot` if trials that run at once disturb each other.
    """
    warnings: list[CampaignWarning] = []
    for result in pilot_results(plan, trials):
        if result.disturbance is not None:
            raise RefusedByPilot(
                disturbance_sentence(plan, result.contrast, result.disturbance),
                hint=f"leave out {option('duet', True)}, so that they run in turns",
            )
        high = None if result.gain is None else result.gain.interval[1]
        if result.gain is not None and high is not None and high < 1.0:
            baseline, candidate = plan.names_of(result.contrast)
            warnings.append(
                CampaignWarning(
                    LESS_SHARP_WARNING,
                    f"{candidate} and {baseline} at once need about {1.0 / result.gain.factor:.1f} "
                    "times the seconds that they need in turns",
                    f"leave out {option('duet', True)}",
                )
            )
    return tuple(warnings)


_SHARED_CLAUSES: dict[Shared, str] = {
    "core or memory": "its CPU time grows, so both share a core, a cache or the memory",
    "CPUs": "it uses more CPUs than the half that it has then",
    "lock or device": "it waits for a lock, a file or a device that both use",
}


def disturbance_sentence(plan: Plan, contrast: Contrast, disturbance: Disturbance) -> str:
    """Return ``b takes 1.42 times as long while a runs: …`` with what the two probably share."""
    names = plan.names_of(contrast)
    slowed, other = names[disturbance.condition], names[1 - disturbance.condition]
    takes = f"takes {disturbance.factor:.2f} times as long while {other} runs"
    return f"{slowed} {takes}: {_SHARED_CLAUSES[disturbance.shared]}"
