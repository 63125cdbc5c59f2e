"""The plan of a campaign of functions, from what the user gave and what trial runs showed."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from keyword import iskeyword

from equipoise.design.limits import ONE_COMMAND, CampaignLimits
from equipoise.functions.functions import Side
from equipoise.functions.trial_runs import Examined, calls_and_rounds
from equipoise.model.plan import (
    CALL_METRIC,
    FUNCTIONS_STUDY,
    Condition,
    FunctionsPlan,
    Judgement,
    Measure,
    Plan,
    Stopping,
)

TIMEOUT_S = 600.0
WARMUP_BLOCKS = 1
_USUAL = {
    "alpha": Judgement().alpha,
    "min_effect": Judgement().min_effect,
    "timeout": TIMEOUT_S,
    "warmup": WARMUP_BLOCKS,
    "patient": False,
}
"""Limits that `equipoise.compare` has where none is given."""


def functions_plan(
    sides: Sequence[Side],
    examined: Sequence[Examined],
    limits: CampaignLimits,
    *,
    setup: str | None,
    ranking: bool = True,
    names: Sequence[str] = (),
) -> Plan:
    """Return the plan that compares functions, or describes one; the first is the baseline.

    Parameters
    ----------
    setup
        Code of the setup, or the name of its function.
    names
        Names that the user chose for the functions.

    Raises
    ------
    UnusableInput
        The limits contradict each other.
    """
    fresh_calls = any(one.changes for one in examined) and any(side.can_renew for side in sides)
    calls, rounds = calls_and_rounds(examined, fresh_calls=fresh_calls)
    seed = limits.drawn_seed()
    return Plan(
        study=FUNCTIONS_STUDY,
        conditions=tuple(
            Condition(name=side.name, command=(sys.executable, "-c", side.source)) for side in sides
        ),
        measure=Measure(
            working_folder=os.getcwd(),
            timeout_s=timeout_of(limits),
            warmup=WARMUP_BLOCKS if limits.warmup is None else limits.warmup,
        ),
        stopping=limits.stopping(
            ONE_COMMAND if len(sides) == 1 else Stopping(leave_out_decided=True)
        ),
        judgement=limits.judgement((CALL_METRIC,)),
        seed=seed,
        ranking=ranking,
        functions=FunctionsPlan(
            calls=tuple(calls),
            rounds=rounds,
            fresh_calls=fresh_calls,
            setup=setup,
            digests=tuple(side.digest for side in sides),
            python=f"{platform.python_implementation()} {platform.python_version()}",
            again=_python_line(sides, setup, limits, seed, names, ranking=ranking),
        ),
    )


def timeout_of(limits: CampaignLimits) -> float:
    """Return the seconds that a process may take."""
    return TIMEOUT_S if limits.timeout is None else limits.timeout


def _python_line(
    sides: Sequence[Side],
    setup: str | None,
    limits: CampaignLimits,
    seed: int,
    names: Sequence[str],
    *,
    ranking: bool,
) -> str:
    """Return the line that asks again; empty where the name of a function is not known."""
    is_code = sides[0].function is None
    written = [*(side.name for side in sides), *([] if setup is None else [setup])]
    if not is_code and (names or not all(map(_is_name, written))):
        return ""
    given = [repr(side.source) if is_code else side.name for side in sides]
    if setup is not None:
        given.append(f"setup={setup!r}" if is_code else f"setup={setup}")
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        if name != "seed" and value is not None and value != _USUAL.get(name):
            given.append(f"{name}={value!r}")
    given += [f"names={[*names]!r}"] if names else []
    given += [] if ranking else ["ranking=False"]
    return f"eq.compare{'_code' if is_code else ''}({', '.join(given)}, seed={seed})"


def _is_name(text: str) -> bool:
    return all(part.isidentifier() and not iskeyword(part) for part in text.split("."))
