"""Processes of functions whose batches are drawn instead of measured, for these tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.campaign.plans import FunctionsRequest
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.functions.conducting import functions_plan
from equipoise.kinds.functions.functions import code_benchmarks
from equipoise.kinds.functions.processes import Answer, ProcessKey
from equipoise.kinds.functions.trial_runs import TrialRunResult
from equipoise.measure.launcher import OnWait
from equipoise.model.plan import Plan
from packages.equipoise.tests.scripted import FINISHED

BATCH_NS = 400_000.0


def plan_of_functions(*codes: str, seed: int = 1, **limits: Any) -> Plan:
    """The plan of a comparison of short pieces of code."""
    benchmarks = code_benchmarks(codes or ("f()", "g()"), "", {})
    examined = [TrialRunResult(4e-6, 4e-6, changes_data=False)] * len(benchmarks)
    request = FunctionsRequest(CampaignLimits(seed=seed, **limits))
    return functions_plan(benchmarks, examined, None, request)


@dataclass
class ScriptedProcesses:
    """Draws the batches of every process.

    In each process every function has an offset of its own, as the layout of memory gives it one;
    what is defined first is faster, and what runs first in a round slower.
    """

    seed: int
    work: tuple[float, ...] = (1.0, 1.0)
    """Duration of a call of each function, relative to the others."""
    layout_sd: float = 0.02
    defined_first: float = -0.01
    runs_first: float = 0.005
    keys: list[ProcessKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._generator = np.random.default_rng(self.seed)

    def run(
        self, key: ProcessKey, instructions: dict[str, Any], on_wait: OnWait | None = None
    ) -> Answer:
        """The batches of one process."""
        self.keys.append(key)
        draw = self._generator
        offsets = draw.standard_t(3, len(self.work)) * self.layout_sd
        offsets[instructions["definition_order"][0]] += self.defined_first
        rounds = np.array(instructions["round_orders"])
        logs = offsets + draw.normal(0.0, 0.003, rounds.shape)
        logs += draw.exponential(0.2, rounds.shape) * (draw.random(rounds.shape) < 0.03)
        logs[0] += 0.3
        logs[np.arange(len(rounds)), rounds[:, 0]] += self.runs_first
        series = (BATCH_NS * np.array(self.work) * np.exp(logs)).astype(int).T.tolist()
        return Answer(FINISHED, {"batches": series})


@dataclass
class NoCovariates:
    """A reader that reads nothing."""

    def read_before(self) -> None:
        """Read nothing."""

    def read_after(self, **_: object) -> dict[str, float | None]:
        """Return nothing."""
        return {}


def ticking(step: float = 0.05) -> Callable[[], float]:
    """Return a clock that advances by one step at every reading."""
    readings = itertools.count()
    return lambda: step * next(readings)
