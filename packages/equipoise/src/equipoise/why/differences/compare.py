"""Compare two conditions: what differs in each source, in their trials, and in what they declare.

No trial of the gap itself ran under a source. Each of its changes is the mean of the differences
within blocks, with Student's t interval over the blocks: means, because then the parts of the gap
add up to it. Seconds of system calls are sums over all threads, and hold what observing a call
costs.
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
    Compute,
    Difference,
    FileChange,
    Setting,
    changes,
    counted,
    measured,
    paired_counted,
    paired_measured,
)
from equipoise.why.differences.locks import locking, locks_change
from equipoise.why.differences.stacks import page_faults_change, waits_change, with_profile
from equipoise.why.evidence.observer import SystemCalls
from equipoise.why.evidence.sources import EvidenceSet, Runs, Side

Run = TypeVar("Run")
Kind = TypeVar("Kind", bound=Struct)

PARTS = ("user_s", "system_s", "waiting_s", "queueing_s")
ACCOUNTS = tuple(
    "minor_faults major_faults voluntary_switches involuntary_switches block_reads block_writes "
    "max_rss_bytes output_bytes".split()
)
_DIGITS = re.compile(r"\d+")
_PATHS = {"LD_PRELOAD": "preload", "LD_LIBRARY_PATH": "library path"}


def difference_between(
    trials: Runs[Trial], evidence: EvidenceSet, conditions: tuple[Condition, Condition]
) -> Difference:
    """Return what differs between two conditions, the baseline and the candidate.

    Of the campaign's analysed trials, those of one block are a pair. The evidence is of any number
    of instrumented runs. Raise `UnusableInput` if there is no block in which the wall time of both
    conditions is known.
    """
    of_trials = trials_difference(trials)
    slower = of_trials.slower
    unseen = {
        source: remarks
        for source, runs in evidence.by_source().items()
        if (remarks := _unseen(evidence.failures.get(source, ()), runs))
    }
    difference = replace(
        of_trials,
        waits=waits_change(evidence.waits, slower),
        locking=locking(evidence.profile, evidence.waits, slower),
        faults=page_faults_change(evidence.page_faults, slower),
        allocations=allocations_change(evidence.allocations, slower),
        instructions=changes(evidence.instructions.map(lambda run: run.functions), slower, counted),
        settings=settings(conditions),
        unseen={**of_trials.unseen, **unseen},
    )
    return with_system_calls(with_profile(difference, evidence.profile), evidence.system_calls)


def _unseen(failures: tuple[str, ...], runs: Runs[Any]) -> tuple[str, ...]:
    """Return why runs of a source gave nothing, and what they could not see, each once."""
    first: dict[str, str] = {}
    for remark in chain(failures, *(run.unseen for run in runs.every)):
        # The runs of a source differ only in the numbers in their remarks.
        first.setdefault(_DIGITS.sub("0", remark), remark)
    return tuple(first.values())


def trials_difference(trials: Runs[Trial]) -> Difference:
    """Return the gap between the analysed trials of both conditions, paired by their blocks.

    The slower condition is the one with more time in the typical block: the sign of the median
    difference. A trial that was stopped at its time limit counts with the time until then. Raise
    `UnusableInput` if there is no block in which the wall time of both is known.
    """
    paired = _paired(trials)
    if not paired.both:
        raise UnusableInput(
            "no block of this campaign has the wall time of both conditions",
            hint="run a campaign that ends with a verdict, and explain that one",
        )
    walls = paired.map(_wall_s)
    differences = list(map(sub, walls.candidate, walls.baseline))
    slower: Side = "candidate" if (median(differences) or sum(differences)) >= 0 else "baseline"
    splits = paired.map(
        lambda trial: split(
            _wall_s(trial),
            trial.accounting.user_s,
            trial.accounting.sys_s,
            trial.covariates.get("run_delay_s"),
        )
    )
    accountings = paired.map(lambda trial: trial.accounting)
    # A part that is unknown in one trial would be of other trials than the rest.
    parts = {
        part: change
        for part in PARTS
        if (change := _known(splits, attrgetter(part), slower, paired_measured)) is not None
    }
    accounts, unseen_accounts = _accounts(accountings, slower)
    unseen = {
        "trials": _stopped(paired),
        "split": tuple(dict.fromkeys(remark for one in splits.every for remark in one.unseen)),
        "accounts": unseen_accounts,
    }
    return Difference(
        slower=slower,
        gap=paired_measured(walls, slower),
        split=parts,
        accounts=accounts,
        unseen={source: remarks for source, remarks in unseen.items() if remarks},
    )


class Split(Struct, frozen=True):
    """Parts of the wall time of one trial, in seconds; ``None`` for a part that is not known."""

    user_s: float | None
    system_s: float | None
    waiting_s: float | None = None
    """Wall time in which no thread ran, without ``queueing_s``."""
    queueing_s: float | None = None
    """Wall time in which the main thread could have run, and waited for a processor; ``None`` where
    that was not read: then ``waiting_s`` holds it."""
    unseen: tuple[str, ...] = ()
    """Sentences about what could not be seen."""


def split(
    wall_s: float,
    user_s: float | None,
    system_s: float | None,
    run_delay_s: float | None = None,
) -> Split:
    """Split the wall time of one trial.

    Where threads or processes ran at the same time, they used more than the time that passed, and
    it is unknown how long all of them waited. ``run_delay_s`` is how long the main thread waited
    for a processor; while it waits for another thread, that thread's delay is waiting time.
    """
    if user_s is None or system_s is None:
        return Split(user_s, system_s, unseen=("user and system time: not accounted",))
    waiting_s = wall_s - user_s - system_s
    if waiting_s < 0:
        several = "waiting time: several threads or processes ran at the same time"
        return Split(user_s, system_s, unseen=(several,))
    if run_delay_s is None:
        return Split(user_s, system_s, waiting_s)
    queueing_s = min(run_delay_s, waiting_s)
    return Split(user_s, system_s, waiting_s - queueing_s, queueing_s)


def _paired(trials: Runs[Trial]) -> Runs[Trial]:
    """Return one trial of each condition for each block that has both, in the order of blocks."""
    baseline, candidate = (
        {
            trial.block: trial
            for trial in side
            if trial.phase == "measured"
            and not trial.washout
            and trial.accounting.wall_s is not None
        }
        for side in (trials.baseline, trials.candidate)
    )
    blocks = sorted(baseline.keys() & candidate.keys())
    return Runs(*(tuple(side[block] for block in blocks) for side in (baseline, candidate)))


def _wall_s(trial: Trial) -> float:
    return trial.accounting.wall_s or 0.0


def _stopped(paired: Runs[Trial]) -> tuple[str, ...]:
    stopped = sum(trial.timed_out for trial in paired.every)
    trials = f"{stopped} of {len(paired.every)} trials"
    remark = f"how long {trials} would have run: they were stopped at the time limit"
    return (remark,) if stopped else ()


def _accounts(
    accountings: Runs[Accounting], slower: Side
) -> tuple[Mapping[str, Change], tuple[str, ...]]:
    """Return the changes of all accounts that every trial has, and why others are unknown."""
    values = accountings.map(
        lambda trial: {**{name: getattr(trial, name) for name in ACCOUNTS}, **trial.counters}
    )
    known: dict[str, Change] = {}
    unseen: list[str] = []
    for name in dict.fromkeys(name for trial in values.every for name in trial):
        change = _known(values, methodcaller("get", name), slower, paired_counted)
        if change is not None:
            known[name] = change
            continue
        reasons = (trial.unknown[name] for trial in accountings.every if name in trial.unknown)
        unseen += [f"{name}: {reason}" for reason in dict.fromkeys(reasons)]
    return known, tuple(unseen)


def _known(
    runs: Runs[Run], value_of: Callable[[Run], float | None], slower: Side, compute: Compute
) -> Change | None:
    """Return the change of what every run knows; ``None`` if a run does not know it."""
    values = runs.map(value_of)
    if None in values.every:
        return None
    return compute(values.map(lambda value: value or 0.0), slower)


def with_system_calls(difference: Difference, runs: Runs[SystemCalls]) -> Difference:
    """Add the system calls; nothing unless both conditions have a run.

    In each mapping the item with the largest extra seconds comes first.
    """
    if not runs.both:
        return difference
    slower = difference.slower
    return replace(
        difference,
        calls=_calls(runs, slower),
        files=_by_name(runs, slower, FileChange, "files", key="name"),
        locks=locks_change(runs, slower),
        processes=counted(runs.map(lambda run: run.processes), slower),
        threads=counted(runs.map(lambda run: run.threads), slower),
        programs=counted(runs.map(lambda run: run.programs), slower),
    )


def _by_name(
    runs: Runs[SystemCalls], slower: Side, kind: type[Kind], items: str, *, key: str
) -> dict[str, Kind]:
    """Return by item the change of its seconds and of its counts, the other fields of ``kind``."""

    def values(field: str) -> Runs[Mapping[str, float]]:
        def sums(run: SystemCalls) -> Mapping[str, float]:
            # Several descriptors may have the same name.
            total: dict[str, float] = defaultdict(float)
            for item in getattr(run, items):
                total[getattr(item, key)] += getattr(item, field)
            return total

        return runs.map(sums)

    by_field = {
        field: changes(values(field), slower, measured if field == "seconds" else counted)
        for field in kind.__struct_fields__
    }
    return {
        name: kind(**{field: change[name] for field, change in by_field.items()})
        for name in by_field["seconds"]
    }


class _Calls(Struct):
    count: Change
    seconds: Change


def _calls(runs: Runs[SystemCalls], slower: Side) -> dict[str, CallsChange]:
    totals = _by_name(runs, slower, _Calls, "calls", key="name")
    errors = changes(
        runs.map(
            lambda run: {
                (calls.name, error): float(times)
                for calls in run.calls
                for error, times in calls.errors.items()
            }
        ),
        slower,
        counted,
    )
    waiting = {calls.name for run in runs.every for calls in run.calls if calls.waits}
    return {
        name: CallsChange(
            count=total.count,
            seconds=total.seconds,
            errors={error: of_error for (call, error), of_error in errors.items() if call == name},
            typical_bytes=_typical_bytes(runs.of(slower), name),
            waits=name in waiting,
        )
        for name, total in totals.items()
    }


def _typical_bytes(runs: Sequence[SystemCalls], name: str) -> int | None:
    sizes: Counter[int] = Counter()
    for run in runs:
        for calls in run.calls:
            if calls.name == name:
                sizes.update({size.value: size.count for size in calls.sizes})
    return max(sizes, key=lambda size: (sizes[size], -size)) if sizes else None


def settings(conditions: tuple[Condition, Condition]) -> tuple[Setting, ...]:
    """Return the settings that the baseline and the candidate declare differently.

    Names are ``program``, ``argument 2``, ``environment LANG``, ``preload``, ``library path``,
    ``working folder``, ``cpus``, ``huge pages``, ``random addresses``, ``before each trial``, and
    the same after ``server``.
    """
    baseline, candidate = conditions
    declared = (
        *_arguments("", baseline.command, candidate.command),
        *_environment("", baseline.environment, candidate.environment),
        *_process("", baseline.process, candidate.process),
        Setting("before each trial", baseline.hooks.prepare, candidate.hooks.prepare),
        *_server(baseline.server, candidate.server),
    )
    return tuple(setting for setting in declared if setting.baseline != setting.candidate)


def _arguments(prefix: str, baseline: Sequence[str], candidate: Sequence[str]) -> Iterator[Setting]:
    """Yield the program and the arguments that differ.

    An argument has its place in the candidate, or, where the candidate lacks it, in the baseline.
    """
    yield Setting(f"{prefix}program", *(next(iter(one), None) for one in (baseline, candidate)))
    arguments, others = baseline[1:], candidate[1:]
    matcher = SequenceMatcher(None, arguments, others, autojunk=False)
    for _, begin, end, other_begin, other_end in matcher.get_opcodes():
        pairs = zip_longest(arguments[begin:end], others[other_begin:other_end])
        for step, (argument, other) in enumerate(pairs):
            place = 1 + (begin if other is None else other_begin) + step
            yield Setting(f"{prefix}argument {place}", argument, other)


def _environment(
    prefix: str, baseline: Mapping[str, str], candidate: Mapping[str, str]
) -> Iterator[Setting]:
    for key in dict.fromkeys((*baseline, *candidate)):
        name = _PATHS.get(key, f"environment {key}")
        yield Setting(f"{prefix}{name}", baseline.get(key), candidate.get(key))


def _process(prefix: str, baseline: Process, candidate: Process) -> Iterator[Setting]:
    others = _described(candidate)
    for name, value in _described(baseline).items():
        yield Setting(f"{prefix}{name}", value, others[name])


def _described(process: Process) -> dict[str, str | None]:
    on_or_off = {None: None, True: "on", False: "off"}
    return {
        "working folder": process.working_folder,
        "cpus": None if process.cpus is None else ",".join(map(str, process.cpus)),
        "huge pages": on_or_off[process.huge_pages],
        "random addresses": on_or_off[process.random_addresses],
    }


def _server(baseline: Server | None, candidate: Server | None) -> Iterator[Setting]:
    if baseline is None or candidate is None:
        both = (None if one is None else " ".join(one.start) for one in (baseline, candidate))
        yield Setting("server", *both)
        return
    prefix = "server "
    yield from _arguments(prefix, baseline.start, candidate.start)
    yield from _environment(prefix, baseline.environment, candidate.environment)
    yield from _process(prefix, baseline.process, candidate.process)
