"""Where one more minute of measuring narrows the interval most."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.model.errors import UnusableInput
from equipoise.model.result import Advice
from equipoise.stats.levels import Levels, plural_of

A_MINUTE_S = 60.0


def advice(
    levels: Levels, unit_s: Sequence[float], *, more_s: float = A_MINUTE_S
) -> tuple[Advice, ...]:
    """Where more measuring time narrows the interval most, the best first.

    The variance of the mean is the sum over levels of the component over its number of units
    (Kalibera and Jones 2013, eq. 5, of a balanced design). New units come with parts of their
    own, as many as now; more of the lowest level are spread over the units that there would be.

    Parameters
    ----------
    levels
        What was measured (``variance_by_level``).
    unit_s
        For each level, the highest first: seconds that one more unit takes by itself, without its
        parts (a reboot, a relink, the start of a process, an iteration).
    more_s
        Seconds to spend.

    Raises
    ------
    UnusableInput
        There is not one cost above 0 for each level.
    """
    components = levels.components
    if len(unit_s) != len(components) or min(unit_s) < 0 or unit_s[-1] <= 0:
        raise UnusableInput(
            f"{len(components)} levels need as many costs in seconds, but there are {len(unit_s)}",
            hint="give what one more unit of each level takes by itself, the highest first",
        )
    whole_s = list(unit_s)
    for place in range(len(components) - 2, -1, -1):
        parts = components[place + 1].units / components[place].units
        whole_s[place] += parts * whole_s[place + 1]
    now = _variance_of_mean(levels, len(components), 1.0)
    found = []
    for place, one in enumerate(components):
        more = more_s / whole_s[place]
        then = _variance_of_mean(levels, place, (one.units + more) / one.units)
        narrower = 1.0 - math.sqrt(then / now) if now > 0 else 0.0
        found.append(Advice(one.level, more, narrower))
    return tuple(sorted(found, key=lambda one: -one.narrower))


def advice_words(found: Sequence[Advice], *, more_s: float = A_MINUTE_S) -> str:
    """One sentence: on what to spend one more minute."""
    time = "minute" if more_s == A_MINUTE_S else f"{more_s:g} s"
    first, *others = found
    words = [f"one more {time} on {_more_of(first)} narrows the interval by {_percent(first)}"]
    words += [f"on {_more_of(one)} by {_percent(one)}" for one in others]
    return ", ".join(words)


def _variance_of_mean(levels: Levels, place: int, times: float) -> float:
    """With ``times`` as many units of the level at ``place`` and of all below it."""
    return sum(
        max(0.0, one.variance) / (one.units * (times if at >= place else 1.0))
        for at, one in enumerate(levels.components)
    )


def _more_of(one: Advice) -> str:
    plural = plural_of(one.level)
    return f"more {plural}" if one.level == "iteration" else f"new {plural}"


def _percent(one: Advice) -> str:
    return f"{100.0 * one.narrower:.0f} %"
