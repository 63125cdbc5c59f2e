"""Compare two conditions: their trials, their settings, and the observations of each source.

A source is a tool that observes a run; the campaign's own trials ran without a source. Changes of
the wall time and its parts are means of differences within blocks, so the parts add up to the gap.
Seconds of system calls are sums over all threads, and include the cost of observing the calls.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain, zip_longest
from operator import attrgetter, methodcaller, sub
from statistics import median
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Process, Server
from equipoise.model.record import Accounting, Trial
from equipoise.why.differences.allocations import allocations_change
from equipoise.why.differences.changes import (
    CallsChange,
    Change,
    ChangeFunction,
    Difference,
    FileChange,
    Setting,
    changes_by_key,
    count_change,
    measure_change,
    paired_count_change,
    paired_measure_change,
)
from equipoise.why.differences.locks import locking, locks_change
from equipoise.why.differences.stacks import page_faults_change, waits_change, with_profile
from equipoise.why.evidence.observer import SystemCalls
from equipoise.why.evidence.sources import EvidenceSet, Runs, Side

Run = TypeVar("Run")
ItemChange = TypeVar("ItemChange", bound=Struct)

TIME_PARTS = ("user_s", "system_s", "waiting_s", "queueing_s")
"""Fields of `TimeParts`."""
RESOURCES = tuple(
    "minor_faults major_faults voluntary_switches involuntary_switches block_reads block_writes "
    "max_rss_bytes output_bytes".split()
)
"""Resources that the launcher counts in each trial: fields of `Accounting`."""
_DIGITS = re.compile(r"\d+")
_SETTING_OF_VARIABLE = {"LD_PRELOAD": "preload", "LD_LIBRARY_PATH": "library path"}
"""Names of settings by variable; other variables are settings under their own names."""


def difference_between(
    trials: Runs[Trial], evidence: EvidenceSet, conditions: tuple[Condition, Condition]
) -> Difference:
    """Return the differences between the baseline and the candidate.

    The trials are compared block by block. Raise `UnusableInput` if no block has the wall time of
    both conditions.
    """
    difference = trials_difference(trials)
    slower = difference.slower
    unseen = {
        source: remarks
        for source, runs in evidence.by_source().items()
        if (remarks := _unseen_remarks(evidence.failures.get(source, ()), runs))
    }
    difference = replace(
        difference,
        waits=waits_change(evidence.waits, slower),
        locking=locking(evidence.profile, evidence.waits, slower),
        faults=page_faults_change(evidence.page_faults, slower),
        allocations=allocations_change(evidence.allocations, slower),
        instructions=changes_by_key(
            evidence.instructions.map(lambda run: run.functions), slower, count_change
        ),
        settings=different_settings(conditions),
        unseen={**difference.unseen, **unseen},
    )
    return with_system_calls(with_profile(difference, evidence.profile), evidence.system_calls)


def _unseen_remarks(failures: tuple[str, ...], runs: Runs[Any]) -> tuple[str, ...]:
    """Return the failures of a source and its remarks about missing data, without repetitions."""
    remarks: dict[str, str] = {}
    for remark in chain(failures, *(run.unseen for run in runs.all_runs)):
        # Remarks that differ only in numbers count as equal.
        remarks.setdefault(_DIGITS.sub("0", remark), remark)
    return tuple(remarks.values())


def trials_difference(trials: Runs[Trial]) -> Difference:
    """Return the difference between the trials of both conditions: wall time, parts, resources.

    The sign of the median difference within blocks decides which condition is slower. If a trial
    was stopped at its time limit, its wall time is this limit. Raise `UnusableInput` if no block
    has the wall time of both conditions.
    """
    shared_trials = _trials_of_shared_blocks(trials)
    if not shared_trials.has_both:
        raise UnusableInput(
            "no block of this campaign has the wall time of both conditions",
            hint="run a campaign that ends with a verdict, and explain that campaign",
        )
    wall_times = shared_trials.map(_wall_s)
    differences = list(map(sub, wall_times.candidate, wall_times.baseline))
    slower: Side = "candidate" if (median(differences) or sum(differences)) >= 0 else "baseline"
    trial_parts = shared_trials.map(
        lambda trial: split_wall_time(
            _wall_s(trial),
            trial.accounting.user_s,
            trial.accounting.sys_s,
            trial.covariates.get("run_delay_s"),
        )
    )
    accountings = shared_trials.map(lambda trial: trial.accounting)
    # Leave out a part that is unknown in a trial: its mean would not belong to the same trials.
    time_parts = {
        part: change
        for part in TIME_PARTS
        if (change := _known_change(trial_parts, attrgetter(part), slower, paired_measure_change))
        is not None
    }
    resources, unseen_resources = _resource_changes(accountings, slower)
    unseen = {
        "trials": _time_limit_remark(shared_trials),
        "times of the trials": tuple(
            dict.fromkeys(remark for parts in trial_parts.all_runs for remark in parts.unseen)
        ),
        "resources": unseen_resources,
    }
    return Difference(
        slower=slower,
        wall_time=paired_measure_change(wall_times, slower),
        time_parts=time_parts,
        resources=resources,
        unseen={source: remarks for source, remarks in unseen.items() if remarks},
    )


class TimeParts(Struct, frozen=True):
    """Parts of the wall time of one trial, in seconds; ``None`` for a part that is not known."""

    user_s: float | None
    system_s: float | None
    waiting_s: float | None = None
    """Wall time in which no thread ran, without ``queueing_s``."""
    queueing_s: float | None = None
    """Wall time in which the main thread waited for a free processor. If it is ``None``,
    ``waiting_s`` includes this time."""
    unseen: tuple[str, ...] = ()


def split_wall_time(
    wall_s: float,
    user_s: float | None,
    system_s: float | None,
    run_delay_s: float | None = None,
) -> TimeParts:
    """Return the parts of the wall time of one trial.

    If parallel threads or processes used more than the wall time, the waiting time is unknown.
    ``run_delay_s`` is the time in which the main thread waited for a free processor.
    """
    if user_s is None or system_s is None:
        return TimeParts(user_s, system_s, unseen=("user and system time are unknown",))
    waiting_s = wall_s - user_s - system_s
    if waiting_s < 0:
        reason = "several threads or processes ran at the same time"
        return TimeParts(user_s, system_s, unseen=(f"waiting time is unknown, because {reason}",))
    if run_delay_s is None:
        return TimeParts(user_s, system_s, waiting_s)
    queueing_s = min(run_delay_s, waiting_s)
    return TimeParts(user_s, system_s, waiting_s - queueing_s, queueing_s)


def _trials_of_shared_blocks(trials: Runs[Trial]) -> Runs[Trial]:
    """Return the analysed trials of the blocks that have both conditions, sorted by block."""
    baseline, candidate = (
        {
            trial.block: trial
            for trial in condition_trials
            if trial.phase == "measured"
            and not trial.washout
            and trial.accounting.wall_s is not None
        }
        for condition_trials in (trials.baseline, trials.candidate)
    )
    blocks = sorted(baseline.keys() & candidate.keys())
    return Runs(*(tuple(by_block[block] for block in blocks) for by_block in (baseline, candidate)))


def _wall_s(trial: Trial) -> float:
    return trial.accounting.wall_s or 0.0


def _time_limit_remark(trials: Runs[Trial]) -> tuple[str, ...]:
    stopped_count = sum(trial.timed_out for trial in trials.all_runs)
    subject = f"the full time of {stopped_count} of {len(trials.all_runs)} trials"
    remark = f"{subject} is unknown, because they were stopped at the time limit"
    return (remark,) if stopped_count else ()


def _resource_changes(
    accountings: Runs[Accounting], slower: Side
) -> tuple[Mapping[str, Change], tuple[str, ...]]:
    """Return the changes of the resources that all trials have; for others, return the reasons."""
    amounts = accountings.map(
        lambda usage: {**{name: getattr(usage, name) for name in RESOURCES}, **usage.counters}
    )
    changes: dict[str, Change] = {}
    unseen: list[str] = []
    for name in dict.fromkeys(chain.from_iterable(amounts.all_runs)):
        change = _known_change(amounts, methodcaller("get", name), slower, paired_count_change)
        if change is not None:
            changes[name] = change
            continue
        reasons = (usage.unknown[name] for usage in accountings.all_runs if name in usage.unknown)
        unseen += [f"{name}: {reason}" for reason in dict.fromkeys(reasons)]
    return changes, tuple(unseen)


def _known_change(
    runs: Runs[Run], value_of: Callable[[Run], float | None], slower: Side, compute: ChangeFunction
) -> Change | None:
    """Return the change of a value; ``None`` if a run has no such value."""
    values = runs.map(value_of)
    if None in values.all_runs:
        return None
    return compute(values.map(lambda value: value or 0.0), slower)


def with_system_calls(difference: Difference, runs: Runs[SystemCalls]) -> Difference:
    """Return the difference with the system calls, if both conditions have an observed run.

    Runs that lost records are left out, unless all runs of the condition did.
    """
    if not runs.has_both:
        return difference
    runs = Runs(_complete_runs(runs.baseline), _complete_runs(runs.candidate))
    slower = difference.slower
    return replace(
        difference,
        calls=_call_changes(runs, slower),
        files=_changes_by_name(runs, slower, FileChange, "files"),
        locks=locks_change(runs, slower),
        processes=count_change(runs.map(lambda run: run.processes), slower),
        threads=count_change(runs.map(lambda run: run.threads), slower),
        programs=count_change(runs.map(lambda run: run.programs), slower),
    )


def _complete_runs(runs: tuple[SystemCalls, ...]) -> tuple[SystemCalls, ...]:
    return tuple(run for run in runs if run.is_complete) or runs


def _changes_by_name(
    runs: Runs[SystemCalls], slower: Side, change_type: type[ItemChange], items_field: str
) -> dict[str, ItemChange]:
    """Return a ``change_type`` for the name of each item in ``SystemCalls.<items_field>``.

    Each field of ``change_type`` is the change of the same field of the items.
    """

    def sums_of_field(field: str) -> Runs[Mapping[str, float]]:
        def sums_by_name(run: SystemCalls) -> Mapping[str, float]:
            # Several descriptors may have the same name.
            sum_by_name: dict[str, float] = defaultdict(float)
            for item in getattr(run, items_field):
                sum_by_name[item.name] += getattr(item, field)
            return sum_by_name

        return runs.map(sums_by_name)

    by_field = {
        field: changes_by_key(
            sums_of_field(field), slower, measure_change if field == "seconds" else count_change
        )
        for field in change_type.__struct_fields__
    }
    return {
        name: change_type(**{field: change[name] for field, change in by_field.items()})
        for name in by_field["seconds"]
    }


class _CallTotals(Struct):
    count: Change
    seconds: Change


def _call_changes(runs: Runs[SystemCalls], slower: Side) -> dict[str, CallsChange]:
    totals = _changes_by_name(runs, slower, _CallTotals, "calls")
    errors = changes_by_key(
        runs.map(
            lambda run: {
                (calls.name, error): float(count)
                for calls in run.calls
                for error, count in calls.errors.items()
            }
        ),
        slower,
        count_change,
    )
    waiting_calls = {calls.name for run in runs.all_runs for calls in run.calls if calls.waits}
    return {
        name: CallsChange(
            count=total.count,
            seconds=total.seconds,
            errors={error: change for (call, error), change in errors.items() if call == name},
            typical_bytes=_most_frequent_size(runs.runs_of(slower), name),
            waits=name in waiting_calls,
        )
        for name, total in totals.items()
    }


def _most_frequent_size(runs: Sequence[SystemCalls], name: str) -> int | None:
    sizes: Counter[int] = Counter()
    for run in runs:
        for calls in run.calls:
            if calls.name == name:
                sizes.update({size.value: size.count for size in calls.sizes})
    return max(sizes, key=lambda size: (sizes[size], -size)) if sizes else None


def different_settings(conditions: tuple[Condition, Condition]) -> tuple[Setting, ...]:
    """Return the settings that the baseline and the candidate declare differently.

    Settings have names such as ``program``, ``argument 2``, ``environment LANG``, ``huge pages``.
    The names of a server's settings begin with ``server``.
    """
    baseline, candidate = conditions
    settings = (
        *_argv_settings("", baseline.command, candidate.command),
        *_variable_settings("", baseline.environment, candidate.environment),
        *_process_settings("", baseline.process, candidate.process),
        Setting("before each trial", baseline.hooks.prepare, candidate.hooks.prepare),
        *_server_settings(baseline.server, candidate.server),
    )
    return tuple(setting for setting in settings if setting.baseline != setting.candidate)


def _argv_settings(
    prefix: str, baseline: Sequence[str], candidate: Sequence[str]
) -> Iterator[Setting]:
    """Yield the programs and the arguments of two commands, aligned by their equal arguments.

    Arguments are numbered as in the candidate. An argument that only the baseline has is numbered
    as in the baseline.
    """
    yield Setting(f"{prefix}program", *(next(iter(argv), None) for argv in (baseline, candidate)))
    old_arguments, new_arguments = baseline[1:], candidate[1:]
    matcher = SequenceMatcher(None, old_arguments, new_arguments, autojunk=False)
    for _, old_begin, old_end, new_begin, new_end in matcher.get_opcodes():
        aligned = zip_longest(old_arguments[old_begin:old_end], new_arguments[new_begin:new_end])
        for offset, (old_argument, new_argument) in enumerate(aligned):
            number = 1 + (old_begin if new_argument is None else new_begin) + offset
            yield Setting(f"{prefix}argument {number}", old_argument, new_argument)


def _variable_settings(
    prefix: str, baseline: Mapping[str, str], candidate: Mapping[str, str]
) -> Iterator[Setting]:
    for key in dict.fromkeys((*baseline, *candidate)):
        name = _SETTING_OF_VARIABLE.get(key, f"environment {key}")
        yield Setting(f"{prefix}{name}", baseline.get(key), candidate.get(key))


def _process_settings(prefix: str, baseline: Process, candidate: Process) -> Iterator[Setting]:
    candidate_values = _values_of_settings(candidate)
    for name, value in _values_of_settings(baseline).items():
        yield Setting(f"{prefix}{name}", value, candidate_values[name])


def _values_of_settings(process: Process) -> dict[str, str | None]:
    on_or_off = {None: None, True: "on", False: "off"}
    return {
        "working folder": process.working_folder,
        "cpus": None if process.cpus is None else ",".join(map(str, process.cpus)),
        "huge pages": on_or_off[process.huge_pages],
        "random addresses": on_or_off[process.random_addresses],
    }


def _server_settings(baseline: Server | None, candidate: Server | None) -> Iterator[Setting]:
    if baseline is None or candidate is None:
        commands = (
            None if server is None else " ".join(server.start) for server in (baseline, candidate)
        )
        yield Setting("server", *commands)
        return
    prefix = "server "
    yield from _argv_settings(prefix, baseline.start, candidate.start)
    yield from _variable_settings(prefix, baseline.environment, candidate.environment)
    yield from _process_settings(prefix, baseline.process, candidate.process)
