"""From the rows of ``equipoise os`` to its conditions, and its defaults."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition
from equipoise.model.primitives import CLASS, PLACEMENT, PROBE, ProbeRow

LEAST_BLOCKS = 6
"""Least number of processes that gives a row's median an exact interval at 95 %
(docs/statistics.md)."""
TIMEOUT_S = 60.0
ALPHA, MIN_EFFECT = 0.05, 5.0
"""Defaults of `equipoise os`; the effect in percent."""


class Form(Struct, frozen=True):
    """Amount that a campaign measures, and each process of a probe."""

    batches: int
    """Batches in one process."""
    batch_ms: int
    """Approximate time of a batch."""
    blocks: int
    budget_s: float

    @property
    def options(self) -> tuple[str, ...]:
        """Options of the probe."""
        return ("--batches", str(self.batches), "--batch-ms", str(self.batch_ms))


QUICK = Form(batches=7, batch_ms=4, blocks=13, budget_s=42.0)
"""A process start and about 35 ms for each trial: less than a minute for all rows."""
FULL = Form(batches=11, batch_ms=10, blocks=15, budget_s=230.0)
"""Less than five minutes for all rows."""


def chosen_rows(rows: Sequence[ProbeRow], names: Sequence[str]) -> tuple[ProbeRow, ...]:
    """Return the rows of the given names, in their own order; all rows if there is no name.

    A name is that of a row, a probe or a table. Raise `UnusableInput` if one is unknown.
    """
    if not names:
        return tuple(rows)
    known = {name for row in rows for name in (row.name, row.probe, row.group)}
    for name in names:
        if name not in known:
            close = get_close_matches(name, sorted(known), 1)
            guess = f"is it {close[0]}? " if close else ""
            raise UnusableInput(
                f"--only {name}: there is no such row, probe or table",
                hint=f"{guess}`equipoise list probes` has them all",
            )
    return tuple(row for row in rows if {row.name, row.probe, row.group}.intersection(names))


def conditions_of_rows(
    rows: Sequence[ProbeRow], program: Path, form: Form
) -> tuple[Condition, ...]:
    """Return a condition for each row, named as the row."""
    return tuple(
        Condition(
            name=row.name,
            command=(str(program), row.probe, *row.options, *form.options),
            levels={CLASS: row.group, PROBE: row.probe, PLACEMENT: row.placement},
            reports=(row.metric,),
        )
        for row in rows
    )
