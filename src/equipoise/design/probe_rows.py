"""From the rows of ``equipoise os`` to conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition
from equipoise.model.primitives import CLASS, PLACEMENT, PROBE, ProbeRow

LEAST_BLOCKS = 6
"""So many processes of a row give its median an exact interval at 95 % (docs/statistics.md)."""
TIMEOUT_S = 60.0
ALPHA, MIN_EFFECT = 0.05, 5.0
"""Of `equipoise os`, unless it is told otherwise; the effect in percent."""


@dataclass(frozen=True, slots=True)
class Batching:
    """How much one process of a probe measures."""

    batches: int
    batch_ms: int
    """About so long does each last."""

    @property
    def options(self) -> tuple[str, ...]:
        """The words for the probe."""
        return ("--batches", str(self.batches), "--batch-ms", str(self.batch_ms))


@dataclass(frozen=True, slots=True)
class Form:
    """How much is measured."""

    batching: Batching
    blocks: int
    budget_s: float


QUICK = Form(Batching(batches=7, batch_ms=4), blocks=13, budget_s=42.0)
"""About a process start and 35 ms for each trial; within a minute for all rows."""
FULL = Form(Batching(batches=11, batch_ms=10), blocks=15, budget_s=230.0)
"""Within five minutes."""


def chosen_rows(rows: Sequence[ProbeRow], asked: Sequence[str]) -> tuple[ProbeRow, ...]:
    """The rows that were asked for, in their own order: by row, by probe or by table.

    Parameters
    ----------
    asked
        Names; all rows if there is none.

    Raises
    ------
    UnusableInput
        A name is none of these.
    """
    if not asked:
        return tuple(rows)
    known = {name for row in rows for name in (row.name, row.probe, row.group)}
    for name in asked:
        if name not in known:
            close = get_close_matches(name, sorted(known), 1)
            meant = f"is it {close[0]}? " if close else ""
            raise UnusableInput(
                f"--only {name}: there is no such row, probe or table",
                hint=f"{meant}`equipoise list probes` has them all",
            )
    wanted = set(asked)
    return tuple(row for row in rows if wanted & {row.name, row.probe, row.group})


def conditions_of_rows(
    rows: Sequence[ProbeRow], program: Path, batching: Batching
) -> tuple[Condition, ...]:
    """A condition for each row, named as the row."""
    return tuple(
        Condition(
            name=row.name,
            command=(str(program), row.probe, *row.options, *batching.options),
            levels={CLASS: row.group, PROBE: row.probe, PLACEMENT: row.placement},
            reports=(row.metric,),
        )
        for row in rows
    )
