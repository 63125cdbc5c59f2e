"""The plan of a campaign of functions, from what the user gave and what trial runs showed."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence

from equipoise.design.coin import fresh_seed
from equipoise.design.limits import ONE_COMMAND, CampaignLimits
from equipoise.functions.functions import Side
from equipoise.functions.trial_runs import Examined, calls_and_rounds
from equipoise.model.functions import CALL_METRIC, STUDY, FunctionsPlan
from equipoise.model.plan import Condition, Measure, Plan, Stopping

TIMEOUT_S = 600.0


def functions_plan(
    sides: Sequence[Side],
    examined: Sequence[Examined],
    limits: CampaignLimits,
    *,
    setup: str | None,
    ranking: bool = True,
) -> Plan:
    """Return the plan that compares functions, or describes one; the first is the baseline.

    Parameters
    ----------
    setup
        Code of the setup, or the name of its function.

    Raises
    ------
    UnusableInput
        The limits contradict each other.
    """
    fresh_calls = any(one.changes for one in examined) and any(side.can_renew for side in sides)
    calls, rounds = calls_and_rounds(examined, fresh_calls=fresh_calls)
    seed = fresh_seed() if limits.seed is None else limits.seed
    return Plan(
        study=STUDY,
        conditions=tuple(
            Condition(name=side.name, command=(sys.executable, "-c", side.source)) for side in sides
        ),
        measure=Measure(
            working_folder=os.getcwd(),
            timeout_s=timeout_of(limits),
            warmup=1 if limits.warmup is None else limits.warmup,
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
            again=_python_line(sides, setup, seed),
        ),
    )


def timeout_of(limits: CampaignLimits) -> float:
    """Return the seconds that a process may take."""
    return TIMEOUT_S if limits.timeout is None else limits.timeout


def _python_line(sides: Sequence[Side], setup: str | None, seed: int) -> str:
    if sides[0].function is None:
        given = [repr(side.source) for side in sides]
        given += [] if setup is None else [f"setup={setup!r}"]
        return f"eq.compare_code({', '.join(given)}, seed={seed})"
    given = [side.name for side in sides] + ([] if setup is None else [f"setup={setup}"])
    return f"eq.compare({', '.join(given)}, seed={seed})"
