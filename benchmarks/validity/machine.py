"""A simulated machine: what each run in a row would take, whichever condition ran there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BASELINE = 0
CANDIDATE = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """Potential outcomes (Neyman 1923): one of the two log times of each run comes true.

    So every tool meets the same noise, in the order in which it runs the conditions itself.
    A time of 1 is what one run of the baseline typically takes.
    """

    logs: FloatArray
    """Shape (2, runs): the log time of each run, were it the baseline's or the candidate's."""
    carried: tuple[float, float] = (0.0, 0.0)
    """What a run of the baseline, of the candidate, adds to the log time of the run after it."""
    quantum: float = 0.0
    """The clock counts whole quanta; 0 for a clock without."""
    quantum_told: float | None = 0.0
    """The resolution that comes with the metric; ``None`` where nobody tells it."""
    phases: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Shape (runs,), for a clock with quanta: how far into a quantum each run starts."""
    time_limit: float = np.inf
    """A run that takes longer is ended."""


def measure(machine: Machine, schedule: IntArray, effect: float) -> FloatArray:
    """What is measured when the conditions run in the order of ``schedule``.

    Parameters
    ----------
    schedule
        Shape (n,): the condition of each run, n at most the runs of the machine.
    effect
        The log ratio by which the candidate takes longer, besides what the machine says.

    Returns
    -------
    Shape (n,): times; infinite for a run that was ended.
    """
    count = len(schedule)
    logs = machine.logs[schedule, np.arange(count)] + effect * schedule
    logs[1:] += np.array(machine.carried)[schedule[:-1]]
    times: FloatArray = np.exp(logs)
    if machine.quantum > 0:
        times = machine.quantum * np.floor(times / machine.quantum + machine.phases[:count])
    times[times > machine.time_limit] = np.inf
    return times
