"""What is simulated, and the figures of the reference: an independent simulation."""

from __future__ import annotations

import math

from msgspec import Struct


class Cell(Struct, frozen=True):
    """One step among some commits, on one kind of machine."""

    step: float
    """Percent."""
    sd: float
    """Percent: standard deviation of the log time of a trial."""
    count: int = 128
    kind: str = "gauss"
    trials: float = math.nan
    """Median of the reference, the confirmation included; NaN where it has none."""
    has_rules: bool = False
    """Whether the other rules are simulated beside it."""
    is_slow: bool = False
    """Whether a campaign takes over 600 trials; left out with ``--quick``."""


def _row(step: float, sd: float, *trials: float, has_rules: bool = True) -> tuple[Cell, ...]:
    counts = (16, 128, 1024)
    return tuple(
        Cell(step, sd, n, trials=t, has_rules=has_rules and n == 128, is_slow=t > 600)
        for n, t in zip(counts, trials, strict=True)
    )


MAIN = (
    *_row(1, 0.5, 80, 112, 146),
    *_row(1, 2, 1054, 1462, 1896),
    *_row(3, 0.5, 40, 52, 60),
    *_row(3, 2, 130, 183, 236),
    *_row(3, 5, 733, 1023, 1280),
    *_row(10, 0.5, 40, 48, 54),
    *_row(10, 2, 44, 54, 64, has_rules=False),
    *_row(10, 5, 86, 122, 156, has_rules=False),
)
"""The table of steps, noise and commits."""

NOISES = tuple(
    Cell(3, 2, 128, kind, trials=trials, has_rules=True, is_slow=kind == "modes")
    for kind, trials in (
        ("drift", 187),
        ("throttle", 196),
        ("ar", 54),
        ("walk", 238),
        ("modes", 680),
        ("t2", 398),
    )
)
"""The table of other noise."""


class LayoutCell(Struct, frozen=True):
    """A step among commits each of which has a memory layout of its own."""

    spread: float
    """Percent: standard deviation of a layout's log cost."""
    step: float = 3.0
    """Percent."""
    prose: float = 0.0
    """Fraction of the commits that change only files of prose."""
    is_bounded: bool = True
    """Whether at most alpha of the searches may name a wrong commit."""


LAYOUTS = (
    LayoutCell(0.0),
    LayoutCell(0.3),
    LayoutCell(0.3, prose=0.5),
    LayoutCell(0.6),
    LayoutCell(0.6, prose=0.5),
    LayoutCell(1.5, is_bounded=False),
    LayoutCell(1.5, prose=0.5, is_bounded=False),
    LayoutCell(0.6, step=0.0),
)
"""The table of layouts: none, a tenth, a fifth and a half of the step; and layouts alone."""
LAYOUTS_SD = 1.0
"""Percent: standard deviation of the log time of a trial."""
LAYOUTS_COUNT = 128


class DriftCell(Struct, frozen=True):
    """A step that changes evenly from block to block, and then stays."""

    first: float
    """Percent: the step in the first block."""
    last: float
    """Percent: the step from block ``blocks`` on."""
    blocks: int
    sd: float
    """Percent: standard deviation of the log time of a trial."""
    spread: float = 0.3
    """Percent: standard deviation of a layout's log cost."""
    kind: str = "gauss"

    @property
    def is_constant(self) -> bool:
        """Whether the step stays the same."""
        return self.first == self.last


DRIFTS = (
    DriftCell(3, 3, 1, 1, spread=0.0),
    DriftCell(3, 3, 1, 1),
    DriftCell(3, 3, 1, 2),
    DriftCell(3, 3, 1, 1, spread=0.6),
    *(DriftCell(3, 3, 1, 1, kind=kind) for kind in ("drift", "ar", "walk", "modes", "t2")),
    DriftCell(1, 5, 50, 1),
    DriftCell(1, 5, 100, 1),
    DriftCell(1, 5, 150, 2),
    DriftCell(1, 5, 300, 2),
    DriftCell(5, 1, 50, 1),
    DriftCell(5, 1, 100, 1),
    DriftCell(5, 1, 150, 2),
    DriftCell(5, 1, 300, 2),
)
"""The table of steps that grow or fade; layouts are at most a fifth of a constant step."""


class Profile(Struct, frozen=True):
    """Several steps among 128 commits, at an sd of 1 %."""

    name: str
    steps: dict[int, float]
    """Percent, by commit."""
    all_named: float
    """Per cent of campaigns in which the reference named all steps."""
    several: float
    """Per cent of campaigns whose first search ended without a single culprit."""
    trials: float


PROFILES = (
    Profile("+5 %", {77: 5}, 100, 0, 654),
    Profile("+2 % at 30, +3 % at 90", {30: 2, 90: 3}, 99.8, 27, 1117),
    Profile("+3 % at 30 and at 90", {30: 3, 90: 3}, 100, 63, 1382),
    Profile("+3 % at 30 and at 31", {30: 3, 31: 3}, 100, 22, 734),
    Profile("+4, +2, +2 %", {20: 4, 60: 2, 100: 2}, 99, 69, 1887),
    Profile("+3, -3, +3 %", {40: 3, 80: -2.91262, 100: 3}, 1, 0.2, 672),
    Profile("128 steps of 0.05 %", dict.fromkeys(range(1, 129), 0.05), 0, 100, 1513),
)
PROFILE_COUNT = 128
PROFILE_SD = 1.0
PROFILE_BLOCKS = 150
"""Blocks of each search of what is left, as in the reference."""
