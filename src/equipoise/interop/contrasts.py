"""Which conditions of an imported run are compared with which."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.interop.reading import BENCHMARK, shown
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Contrast

NAMES_SHOWN = 5


def contrasts_of(conditions: Sequence[Condition], compared: str | None) -> tuple[Contrast, ...]:
    """Compare the levels of one factor where everything else is equal.

    Parameters
    ----------
    compared
        The factor; with `BENCHMARK` every condition is compared with the first one, with ``None``
        nothing is: benchmarks of one file are different things.

    Returns
    -------
    The first of the conditions that share all other levels is the baseline of the rest.
    """
    if compared is None:
        return ()
    if compared == BENCHMARK:
        return tuple(Contrast(0, index) for index in range(1, len(conditions)))
    firsts: dict[tuple[tuple[str, str], ...], int] = {}
    found: list[Contrast] = []
    for index, condition in enumerate(conditions):
        shared = {name: level for name, level in condition.levels.items() if name != compared}
        baseline = firsts.setdefault(tuple(sorted(shared.items())), index)
        if baseline != index:
            found.append(Contrast(baseline, index, factor=compared, stratum=shared))
    return tuple(found)


def with_baseline(conditions: Sequence[Condition], name: str) -> tuple[Contrast, ...]:
    """Compare every other condition with the one of this name.

    Raises
    ------
    UnusableInput
        There is none.
    """
    names = [condition.name for condition in conditions]
    if name not in names:
        some = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
        raise UnusableInput(f"no condition is named {shown(name)}", hint=f"there are: {some}")
    baseline = names.index(name)
    return tuple(Contrast(baseline, index) for index in range(len(names)) if index != baseline)
