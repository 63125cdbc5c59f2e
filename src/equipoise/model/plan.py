"""The plan of a campaign: what is run, how it is measured, and how it is judged.

A plan is fixed before the first trial and kept whole in the ledger: with the trials it
is all that a verdict is computed from (rule 6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

PRIMARY_METRIC = "wall_s"

OutputKind = Literal["discard", "inherit", "count", "file"]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Commands around the trials, run through a shell and never timed."""

    setup: str | None = None
    """Before the first trial of the condition."""
    prepare: str | None = None
    """Before each trial."""
    conclude: str | None = None
    """After each trial."""
    cleanup: str | None = None
    """After the last trial of the condition."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One level of each factor: one thing that can be run."""

    name: str
    command: tuple[str, ...]
    """The argument vector; with a shell, the shell and its arguments come first."""
    levels: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """Set for this condition, over the environment of the caller."""
    hooks: Hooks = Hooks()


@dataclass(frozen=True, slots=True)
class Output:
    """Where the standard output of a trial goes; never a pipe that it could block on."""

    kind: OutputKind = "discard"
    path: str | None = None
    """The file, for the kind ``file``."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How trials are run."""

    working_folder: str
    input: str | None = None
    """A file for standard input; nothing (``/dev/null``) by default."""
    output: Output = Output()
    timeout_s: float = 600.0
    warmup: int = 1
    """Trials of each condition before the first block, kept and marked, never analysed."""
    washout: bool = False
    """Run each condition twice in a row and count the second."""
    ignore_failure: bool = False
    vary_environment_size: bool = True
    """Draw the size of the environment anew for each block (Mytkowicz et al. 2009)."""
    counters: tuple[str, ...] = ()
    """What is counted in each trial beside its usual accounting."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """When a campaign ends."""

    blocks: int = 200
    """At most so many."""
    min_blocks: int = 5
    min_blocks_explicit: bool = False
    """An explicit minimum beats the budget."""
    budget_s: float = 60.0
    precision: float | None = None
    """Go on until the interval is at most this wide, in percent."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How the trials are judged."""

    alpha: float = 0.05
    min_effect: float = 1.0
    """The smallest effect that matters, in percent; 0 for none."""
    primary_metric: str = PRIMARY_METRIC
    other_metrics: tuple[str, ...] = ()
    """Judged at the stop, with the false-discovery rate at alpha among them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that was decided before the first trial.

    The first condition is the baseline; each other one but the control is a candidate.
    """

    study: str
    conditions: tuple[Condition, ...]
    measure: Measure
    stopping: Stopping
    judgement: Judgement
    seed: int
    control: int | None = None
    """The condition that runs the baseline a second time, to check the tool."""

    @property
    def candidates(self) -> tuple[int, ...]:
        """The conditions that are compared with the baseline."""
        return tuple(i for i in range(1, len(self.conditions)) if i != self.control)
