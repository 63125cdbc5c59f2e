"""Makes the plans of `compare` and `run` from their options, for the command line and Python."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.progress import ProgressListener
from equipoise.design.coin import Addresses
from equipoise.design.commands import (
    CompareOptions,
    conditions_of,
    contrasts_of,
    output_of_all,
    repeated_setup,
    with_control,
)
from equipoise.design.layouts import with_layouts
from equipoise.design.limits import (
    ONE_COMMAND_LIMITS,
    STUDY_BLOCKS,
    WHAT_VARIES_BLOCKS,
    CampaignLimits,
    check_number,
    limits_of,
    metric_names,
)
from equipoise.measure.duet import two_cpu_sets
from equipoise.measure.environment import mapped_libraries
from equipoise.measure.environment.system import Host, addresses_are_random, addresses_can_be_held
from equipoise.measure.installation import native_programs
from equipoise.measure.launcher import counters_among
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import (
    COMPARE_STUDY,
    COVARIATES_BEFORE_TRIAL,
    MAX_RANKED_CONDITIONS,
    MIN_RANKED_CONDITIONS,
    Judgement,
    Measure,
    Plan,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.shared.spelling import option
from equipoise.stats.verdict import decisive_block

if TYPE_CHECKING:
    from equipoise.design.chance import ChanceSource
    from equipoise.design.grid import Grid
    from equipoise.model.study import Study

PlanAndWarnings = tuple[Plan, tuple[CampaignWarning, ...]]
"""A plan, and warnings about conditions or layouts that this host cannot run."""


class FunctionsRequest(Struct, frozen=True):
    """Options of a comparison of functions, without the functions themselves."""

    limits: CampaignLimits
    names: Sequence[str] = ()
    """Names that the user chose for the functions."""
    ranking: bool | None = None
    """Whether to rank the functions; by default, if this is possible."""
    ledger: Path | str | None = None
    """Path of the ledger; ``None`` for the default ledger."""
    allow_concurrent: bool = False
    """Whether to measure while another campaign measures on this host."""
    progress: ProgressListener | None = None


def compare_plan(options: CompareOptions) -> PlanAndWarnings:
    """Return the plan that compares commands, or that describes a single command.

    Raise `UnusableInput` if the options contradict each other or have bad values.
    """
    metrics = metric_names(options.metrics)
    limits = options.limits
    conditions = conditions_of(options, native_programs())
    is_single = len(conditions) == 1 and not options.what_varies
    plan = Plan(
        study=COMPARE_STUDY,
        conditions=with_control(conditions) if options.control else conditions,
        measure=limits.measure(
            Measure(
                working_folder=os.getcwd(),
                input=_input_path(options.input),
                output=output_of_all(options),
                washout=options.washout,
                ignore_failure=options.ignore_failure,
                ignored_exits=options.ignored_exits,
                counters=counters_among(metrics),
            )
        ),
        stopping=limits.stopping(
            ONE_COMMAND_LIMITS if is_single else Stopping(leave_out_decided=True)
        ),
        judgement=replace(
            limits.judgement(metrics), adjust_by=COVARIATES_BEFORE_TRIAL if options.adjust else ()
        ),
        seed=limits.seed_or_random(),
        control=len(conditions) if options.control else None,
        chosen_contrasts=contrasts_of(options, conditions),
        ranking=options.ranking is not False,
    )
    if not options.what_varies:
        plan_and_warnings = plan_with_layouts(plan, options.layouts, options.aslr)
        plan, warnings = _with_ranking_warnings(plan_and_warnings, options.ranking)
        if options.duet:
            plan = with_trials_at_once(plan)
        if options.adjust and plan.not_adjustable_because is not None:
            raise UnusableInput(
                f"{option('adjust')} is not possible: {plan.not_adjustable_because}",
                hint=f"leave out {option('adjust')}, or compare only two commands",
            )
        return plan, (*warnings, *_setup_warnings(options))
    layouts, ranking = option("layouts"), option("ranking", True)
    conflicts = {
        f"examines one command, but {option('adjust')} compares two": options.adjust,
        f"examines one command, but {option('duet')} runs two at once": options.duet,
        f"tests one source of chance at a time, but {layouts} draws several": options.layouts,
        f"examines one command, but {ranking} ranks several": options.ranking,
    }
    for conflict, is_requested in conflicts.items():
        if is_requested:
            problem = f"{option('what_varies')} {conflict}"
            raise UnusableInput(problem, hint="leave out one of the two options")
    return _hold_sources_of_chance(plan)


def with_trials_at_once(plan: Plan) -> Plan:
    """Return the plan whose trials run at once, two by two (``--duet``).

    Raise `UnusableInput` if a block does not consist of pairs, if something else runs before or
    next to a trial, or if Equipoise may use only one CPU.
    """
    duet = option("duet", True)
    paired = sorted(index for contrast in plan.contrasts for index in contrast.pair)
    if plan.control is not None:
        raise UnusableInput(
            f"{duet} runs two conditions at once, and {option('control', True)} adds a third",
            hint=f"leave out {option('control', True)}",
        )
    if paired != list(range(len(plan.conditions))):
        raise UnusableInput(
            f"{duet} runs two conditions at once, not {len(plan.conditions)}",
            hint=f"give two commands, or leave out {duet}",
        )
    if plan.measure.washout:
        raise UnusableInput(
            f"{duet} cannot be combined with {option('washout', True)}: the trials of a block do "
            "not follow each other",
            hint=f"leave out {option('washout', True)}",
        )
    if any(condition.server is not None for condition in plan.conditions):
        raise UnusableInput(
            f"{duet} cannot run servers, which would be alive at the same time",
            hint=f"leave out {duet}",
        )
    for contrast in plan.contrasts:
        paths = [
            (plan.conditions[index].output or plan.measure.output).path for index in contrast.pair
        ]
        if paths[0] is not None and paths[0] == paths[1]:
            raise UnusableInput(
                f"with {duet}, both commands would write to {paths[0]} at once",
                hint=f"give a file of its own to each: repeat {option('output', 'FILE')}",
            )
    return replace(plan, measure=replace(plan.measure, cpu_sets=two_cpu_sets()))


def _setup_warnings(options: CompareOptions) -> Iterator[CampaignWarning]:
    parameter = repeated_setup(options)
    if parameter is not None:
        yield CampaignWarning(
            "setup_repeated",
            f"{option('setup')} ran before each trial: it contains {{{parameter}}}, which no "
            "command does",
            f"to set up once, build each value in a folder of its own, and use {{{parameter}}} in "
            "the command",
        )


def _hold_sources_of_chance(plan: Plan) -> PlanAndWarnings:
    """Return the plan that holds each source of chance in turn, for its only condition.

    A source of chance, such as the memory addresses, makes the runs of one command vary. To hold a
    source means to keep it constant. Warnings name the sources that this host cannot hold.
    """
    from equipoise.design import chance
    from equipoise.stats.spread import MIN_BLOCKS

    if len(plan.conditions) != 1:
        raise UnusableInput(
            f"{option('what_varies')} examines one command, not {len(plan.conditions)}",
            hint=f"leave out {option('control')} and all commands but one",
        )
    blocks = plan.stopping.blocks or WHAT_VARIES_BLOCKS
    if blocks < MIN_BLOCKS:
        raise UnusableInput(
            f"{option('what_varies')} needs more than {blocks} blocks",
            hint=f"give at least {option('blocks', MIN_BLOCKS)}",
        )
    environment = own_environment()
    sources, warnings = chance.sources_on_host(
        environment,
        tuple(sorted(os.sched_getaffinity(0))),
        random_addresses=addresses_are_random(Host()),
    )
    file_order = _file_order(plan, environment)
    if isinstance(file_order, CampaignWarning):
        warnings = (*warnings, file_order)
    else:
        sources = (*sources, file_order)
    conditions = chance.conditions_by_held_source(plan.conditions[0], sources)
    holding_plan = replace(
        plan,
        study=chance.WHAT_VARIES_STUDY,
        conditions=conditions,
        chosen_contrasts=(),
        # The number of blocks must not depend on measured times.
        stopping=replace(plan.stopping, blocks=blocks),
    )
    return holding_plan, warnings


def _file_order(plan: Plan, environment: Mapping[str, str]) -> ChanceSource | CampaignWarning:
    """Return the order of files as a source of chance; a warning if it cannot be held."""
    from equipoise.design import chance

    condition = plan.conditions[0]
    library = native_programs() / chance.FILE_ORDER_LIBRARY
    if not library.is_file():
        return chance.untested_warning(chance.FILE_ORDER, f"{library} is missing", "make build")
    variables = {**environment, **condition.environment}
    preloaded = f"{library} {variables.get(chance.PRELOAD_VARIABLE, '')}".strip()
    source = chance.ChanceSource(chance.FILE_ORDER, {chance.PRELOAD_VARIABLE: preloaded})
    mapped = mapped_libraries(
        condition.command, {**variables, **source.environment}, plan.measure.working_folder
    )
    if os.path.realpath(library) in (mapped.libraries or {}).values():
        return source
    reason = mapped.unknown_because or "; ".join(mapped.problems)
    return chance.untested_warning(
        chance.FILE_ORDER,
        f"{chance.FILE_ORDER_LIBRARY} cannot be preloaded into {condition.command[0]}: {reason}",
        "use a program that is linked dynamically to this host's C library",
    )


def study_plan(
    study: Study, grid: Grid, limits: CampaignLimits, *, ranking: bool | None = None
) -> PlanAndWarnings:
    """Return the plan of a study, with the conditions and contrasts of its grid.

    ``limits`` take precedence over the limits of the study. If ``ranking`` is ``None``, conditions
    are ranked if this is possible.

    Raise `UnusableInput` if the limits contradict each other, this host cannot draw the layouts, or
    a requested ranking is not possible.
    """
    measure = study.measure
    user_limits, study_limits = limits, limits_of(asdict(measure))
    default_stopping = Stopping(leave_out_decided=True)
    if user_limits.budget is not None and study_limits.min_seconds is not None:
        # If the minimum exceeds the budget, the budget ends the campaign, with a warning.
        default_stopping = replace(default_stopping, min_seconds=study_limits.min_seconds)
        study_limits = replace(study_limits, min_seconds=None)
    limits = user_limits.filled_from(study_limits)
    stopping = limits.stopping(default_stopping)
    if not grid.contrasts:
        stopping = replace(stopping, blocks=stopping.blocks or STUDY_BLOCKS)
    elif measure.extends_to_verdicts:
        stopping = _with_blocks_for_verdicts(
            stopping, user_limits, len(grid.contrasts), limits.alpha
        )
    plan = Plan(
        study=study.name,
        conditions=grid.conditions,
        measure=limits.measure(
            Measure(
                working_folder=os.getcwd(),
                washout=measure.washout,
                ignore_failure=measure.ignore_failure,
                counters=counters_among(measure.metrics),
            )
        ),
        stopping=stopping,
        judgement=limits.judgement(measure.metrics),
        seed=limits.seed_or_random(),
        chosen_contrasts=grid.contrasts,
        sizes=tuple(factor.name for factor in study.factors if factor.role == "size"),
        ranking=ranking is not False,
    )
    plan_and_warnings = plan_with_layouts(plan, measure.layouts, measure.aslr)
    # Without a request for a ranking, there is no warning.
    return _with_ranking_warnings(plan_and_warnings, ranking) if ranking else plan_and_warnings


def _with_ranking_warnings(
    plan_and_warnings: PlanAndWarnings, ranking: bool | None
) -> PlanAndWarnings:
    """Add the warnings of `ranking_warnings`, which may raise `UnusableInput`."""
    plan, warnings = plan_and_warnings
    group_size = 1 + max(map(len, plan.groups), default=0)
    added_warnings = ranking_warnings(group_size, ranking, has_layouts=bool(plan.layouts))
    return plan, (*warnings, *added_warnings)


def ranking_warnings(
    group_size: int, ranking: bool | None, *, has_layouts: bool = False
) -> tuple[CampaignWarning, ...]:
    """Return a warning if a group of ``group_size`` conditions cannot be ranked.

    If the user requested a ranking (``ranking``), raise `UnusableInput` instead.
    """
    if ranking and group_size < 2:
        raise UnusableInput(
            "nothing is compared, so there is nothing to rank",
            hint="give two or more commands or functions, or leave out the ranking",
        )
    if ranking is False or group_size < MIN_RANKED_CONDITIONS:
        return ()
    if has_layouts:
        problem = f"{group_size} conditions cannot be ranked with {option('layouts')}"
        hint = (
            f"give {option('ranking', False)} to compare only with the baseline, or leave out "
            f"{option('layouts')}"
        )
    elif group_size > MAX_RANKED_CONDITIONS:
        problem = (
            f"{group_size} conditions cannot be ranked: "
            f"a ranking has at most {MAX_RANKED_CONDITIONS}"
        )
        hint = (
            f"compare {MAX_RANKED_CONDITIONS} at a time, or give {option('ranking', False)} to "
            "compare only with the baseline"
        )
    else:
        return ()
    if ranking:
        raise UnusableInput(problem, hint=hint)
    summary = f"{problem}; each is compared only with its baseline"
    return (CampaignWarning("no_ranking", summary, hint),)


def _with_blocks_for_verdicts(
    stopping: Stopping, user_limits: CampaignLimits, comparison_count: int, alpha: float | None
) -> Stopping:
    """Return limits with enough blocks for each verdict; a limit of the user stays unchanged."""
    block_count = decisive_block(Judgement().alpha if alpha is None else alpha, comparison_count)
    if user_limits.blocks is None and stopping.blocks is not None:
        stopping = replace(stopping, blocks=max(stopping.blocks, block_count))
    if user_limits.budget is None:
        stopping = replace(stopping, blocks_before_budget=block_count)
    return stopping


def plan_with_layouts(
    plan: Plan, layout_count: int | None, aslr: Addresses | None
) -> PlanAndWarnings:
    """Return the plan with ``layout_count`` memory layouts, and warnings.

    Raise `UnusableInput` if ``aslr`` is given without layouts, or is not possible on this host.
    """
    check_number("layouts", layout_count)
    if aslr not in (None, "drawn", "on", "off"):
        raise UnusableInput(
            f"{option('aslr', aslr)}: there is no such choice", hint="give drawn, on or off"
        )
    if layout_count is None:
        if aslr is not None:
            raise UnusableInput(
                f"{option('aslr', aslr)} is about layouts, but there are no layouts",
                hint=f"add {option('layouts', 12)}",
            )
        return plan, ()
    is_random = addresses_are_random(Host())
    if is_random and addresses_can_be_held():
        return with_layouts(plan, layout_count, aslr or "drawn"), ()
    possible_aslr, problem, remedy = _ALWAYS_RANDOM if is_random else _NEVER_RANDOM
    hint = f"{remedy}, or give {option('aslr', possible_aslr)}"
    limited_plan = with_layouts(plan, layout_count, possible_aslr)
    if aslr == possible_aslr:
        return limited_plan, ()
    if aslr is not None:
        raise UnusableInput(problem, hint=hint)
    return limited_plan, (CampaignWarning("layouts_without_addresses", problem, hint),)


_ALWAYS_RANDOM: tuple[Addresses, str, str] = (
    "on",
    "this host cannot switch off random memory addresses (ASLR), so no layout is without them",
    "allow the system call personality(2) in the container's seccomp profile",
)
"""For a host that always draws addresses: the possible value of ``--aslr``; the problem and the
remedy of the other values."""
_NEVER_RANDOM: tuple[Addresses, str, str] = (
    "off",
    "random memory addresses (ASLR) are switched off on this host, so no layout has them",
    "switch them on with sysctl kernel.randomize_va_space=2",
)
"""The same for a host on which random addresses are switched off."""


def _input_path(path: str | None) -> str | None:
    if path is None or path == "null":
        return None
    if not os.path.isfile(path):
        raise UnusableInput(
            f"{option('input', path)}: there is no such file", hint="give the path of a file"
        )
    if not os.access(path, os.R_OK):
        raise UnusableInput(f"{option('input', path)} cannot be read", hint="check its permissions")
    return os.path.abspath(path)
