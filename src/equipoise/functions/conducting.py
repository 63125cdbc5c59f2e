"""Conducting a campaign of functions: trial runs, the plan, the campaign, its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from equipoise.campaign import conduct
from equipoise.campaign.plans import ranking_warnings
from equipoise.campaign.progress import ProgressListener
from equipoise.design.limits import CampaignLimits
from equipoise.functions.functions import Side, code_sides, function_sides
from equipoise.functions.plan import functions_plan, timeout_of
from equipoise.functions.runner import examining_processes, runner_factory
from equipoise.functions.trial_runs import examine, warnings_of
from equipoise.ledger import open_for_writing
from equipoise.ledger.opening import default_ledger
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord


class FunctionsRequest(Struct, frozen=True):
    """A comparison of functions that the user asks for, beside the functions themselves."""

    limits: CampaignLimits
    names: Sequence[str] = ()
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

    Parameters
    ----------
    options_of_commands
        Options that the user gave and that commands alone have; those that are false were not
        given.

    Raises
    ------
    UnusableInput
        Not all of ``commands`` are functions, one of them cannot be compared, or an option does not
        fit.
    ConditionFailed
        A function failed.
    KeyboardInterrupt
        The user interrupted it; every finished trial is in the ledger.
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
    return _compare(sides, setup_name, request)


def compare_pieces(
    codes: Sequence[str], setup: str, available: Mapping[str, object], request: FunctionsRequest
) -> RunRecord:
    """Compare pieces of code, or describe one, and return the record of the campaign.

    Parameters
    ----------
    available
        Values of names that the code may use.

    Raises
    ------
    UnusableInput
        There is no piece, or one of them cannot be compared.
    ConditionFailed
        A piece of code failed.
    KeyboardInterrupt
        The user interrupted it; every finished trial is in the ledger.
    """
    sides = code_sides(codes, setup, available, request.names)
    return _compare(sides, setup or None, request)


def _compare(sides: Sequence[Side], setup: str | None, request: FunctionsRequest) -> RunRecord:
    if not sides:
        raise UnusableInput(
            "there is no code to compare", hint='as in eq.compare_code("sorted(x)", "x.sort()")'
        )
    no_ranking = ranking_warnings(len(sides), request.ranking)
    listener = request.progress or ProgressListener()
    with conduct.measurement_lock(lambda _: None, allow_concurrent=request.allow_concurrent):
        timeout_s = timeout_of(request.limits)
        with examining_processes(sides, timeout_s) as processes:
            examined = examine(sides, processes, timeout_s=timeout_s)
        plan = functions_plan(
            sides,
            examined,
            request.limits,
            setup=setup,
            ranking=request.ranking is not False,
            names=request.names,
        )
        assert plan.functions is not None, "it is a plan of functions"
        with open_for_writing(Path(request.ledger or default_ledger()), durable=False) as store:
            try:
                run_id = conduct.start(
                    plan,
                    store,
                    listener,
                    warnings=(*warnings_of(sides, examined, plan.functions), *no_ranking),
                    runner_factory=runner_factory(sides),
                )
            except conduct.Interrupted as interruption:
                run = interruption.run_id
                raise KeyboardInterrupt(f"what was measured is kept as run {run}") from interruption
            return store.read_run(run_id)
