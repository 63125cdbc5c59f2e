"""Conducting a campaign of functions: trial runs, the plan, the campaign, its record."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from keyword import iskeyword
from pathlib import Path

from msgspec import Struct

from equipoise.campaign import conduct
from equipoise.campaign.plans import ranking_warnings
from equipoise.campaign.progress import ProgressListener
from equipoise.design.limits import ONE_COMMAND, CampaignLimits
from equipoise.files.state import default_ledger
from equipoise.kinds.functions.functions import Side, code_sides, function_sides
from equipoise.kinds.functions.own_process import Original, refuse_copies_that_differ
from equipoise.kinds.functions.runner import function_runner
from equipoise.kinds.functions.terms import STUDY, FunctionsPlan, functions_of
from equipoise.kinds.functions.trial_runs import Examined, calls_and_rounds, examine, warnings_of
from equipoise.ledger import open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import CALL_METRIC, Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import RunRecord

_MEASURE = Measure(working_folder="")
_USUAL = {
    "alpha": Judgement().alpha,
    "min_effect": Judgement().min_effect,
    "timeout": _MEASURE.timeout_s,
    "warmup": _MEASURE.warmup,
    "patient": False,
}
"""Limits that `equipoise.compare` has where none is given."""


class FunctionsRequest(Struct, frozen=True):
    """A comparison of functions that the user asks for, beside the functions themselves."""

    limits: CampaignLimits
    names: Sequence[str] = ()
    """Names that the user chose for the functions."""
    ranking: bool | None = None
    ledger: Path | str | None = None
    """Ledger that keeps the campaign; by default the usual one."""
    allow_concurrent: bool = False
    progress: ProgressListener | None = None


def compare_functions(
    commands: Sequence[object],
    setup: Callable[[], object] | None,
    request: FunctionsRequest,
    options_of_commands: Mapping[str, object],
) -> RunRecord:
    """Compare functions, or describe one, and return the record of the campaign.

    ``options_of_commands`` are those that commands alone have; those that are false were not given.
    Raise `UnusableInput` if not all of ``commands`` are functions, one of them cannot be compared,
    or an option does not fit; `ConditionFailed` if a function failed; `KeyboardInterrupt` if the
    user interrupted it: every finished trial is then in the ledger.
    """
    functions = [one for one in commands if callable(one)]
    if len(functions) < len(commands) or not functions:
        raise UnusableInput(
            "setup= is for functions" if not functions else "commands and functions are mixed",
            hint="give functions alone; a command becomes one with subprocess.run",
        )
    given = [name for name, value in options_of_commands.items() if value]
    if given:
        raise UnusableInput(
            f"{given[0]}= is for commands: all functions of a block share one process",
            hint="leave it out, or compare programs",
        )
    sides = function_sides(functions, setup, request.names)
    setup_name = None if setup is None else getattr(setup, "__name__", type(setup).__name__)
    originals = [Original(function) for function in functions]
    return _compare(sides, originals, setup_name, request)


def compare_pieces(
    codes: Sequence[str], setup: str, available: Mapping[str, object], request: FunctionsRequest
) -> RunRecord:
    """Compare pieces of code, or describe one, and return the record of the campaign.

    ``available`` are values of names that the code may use. Raise `UnusableInput` if there is no
    piece, or one of them cannot be compared; `ConditionFailed` if a piece of code failed;
    `KeyboardInterrupt` if the user interrupted it: every finished trial is then in the ledger.
    """
    sides = code_sides(codes, setup, available, request.names)
    originals = [Original(names=available)] * len(sides)
    return _compare(sides, originals, setup or None, request)


def _compare(
    sides: Sequence[Side],
    originals: Sequence[Original],
    setup: str | None,
    request: FunctionsRequest,
) -> RunRecord:
    if not sides:
        raise UnusableInput(
            "there is no code to compare", hint='as in eq.compare_code("sorted(x)", "x.sort()")'
        )
    no_ranking = ranking_warnings(len(sides), request.ranking)
    with conduct.measurement_lock(conduct.warn_of_wait, allow_concurrent=request.allow_concurrent):
        examined = examine(sides, timeout_s=request.limits.timeout_s)
        if setup is None:
            refuse_copies_that_differ(sides, originals, examined, request.limits.timeout_s)
        plan = functions_plan(sides, examined, setup, request)
        with open_for_writing(Path(request.ledger or default_ledger()), durable=False) as store:
            try:
                run_id = conduct.start(
                    plan,
                    store,
                    request.progress or ProgressListener(),
                    warnings=(*warnings_of(sides, examined, functions_of(plan)), *no_ranking),
                    runner_factory=partial(function_runner, sides),
                )
            except conduct.Interrupted as interruption:
                run = interruption.run_id
                raise KeyboardInterrupt(f"what was measured is kept as run {run}") from interruption
            return store.read_run(run_id)


def functions_plan(
    sides: Sequence[Side],
    examined: Sequence[Examined],
    setup: str | None,
    request: FunctionsRequest,
) -> Plan:
    """Return the plan that compares functions, or describes one; the first is the baseline.

    ``setup`` is the code of the setup, or the name of its function. Raise `UnusableInput` if the
    limits contradict each other.
    """
    limits = request.limits
    fresh_calls = any(one.changes for one in examined) and any(side.can_renew for side in sides)
    calls, rounds = calls_and_rounds(examined, fresh_calls=fresh_calls)
    seed = limits.drawn_seed()
    return Plan(
        study=STUDY,
        conditions=tuple(
            Condition(name=side.name, command=(sys.executable, "-c", side.source)) for side in sides
        ),
        measure=limits.measure(Measure(working_folder=os.getcwd())),
        stopping=limits.stopping(
            ONE_COMMAND if len(sides) == 1 else Stopping(leave_out_decided=True)
        ),
        judgement=limits.judgement((CALL_METRIC,)),
        seed=seed,
        ranking=request.ranking is not False,
        terms=FunctionsPlan(
            calls=tuple(calls),
            rounds=rounds,
            fresh_calls=fresh_calls,
            setup=setup,
            digests=tuple(side.digest for side in sides),
            python=f"{platform.python_implementation()} {platform.python_version()}",
            again=_python_line(sides, setup, request, seed),
        ),
    )


def _python_line(
    sides: Sequence[Side], setup: str | None, request: FunctionsRequest, seed: int
) -> str:
    """Return the line that asks again; empty where the name of a function is not known."""
    is_code, limits, names = sides[0].function is None, request.limits, request.names
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
    given += ["ranking=False"] if request.ranking is False else []
    return f"eq.compare{'_code' if is_code else ''}({', '.join(given)}, seed={seed})"


def _is_name(text: str) -> bool:
    return all(part.isidentifier() and not iskeyword(part) for part in text.split("."))
