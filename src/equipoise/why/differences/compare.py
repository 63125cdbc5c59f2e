"""Compare two conditions: what differs in what each source saw, and in what they declare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain, zip_longest
from typing import Any

from msgspec.structs import replace

from equipoise.model.plan import Condition, Process, Server
from equipoise.model.record import Trial
from equipoise.why.differences.allocations import allocations_change
from equipoise.why.differences.changes import Difference, Setting, changes, counted
from equipoise.why.differences.stacks import page_faults_change, waits_change, with_profile
from equipoise.why.differences.system_calls import with_system_calls
from equipoise.why.differences.trials import trials_difference
from equipoise.why.evidence.sources import EvidenceSet, Runs

_DIGITS = re.compile(r"\d+")
_PATHS = {"LD_PRELOAD": "preload", "LD_LIBRARY_PATH": "library path"}


def difference_between(
    trials: Runs[Trial], evidence: EvidenceSet, conditions: tuple[Condition, Condition]
) -> Difference:
    """Return what differs between two conditions, the baseline and the candidate.

    Of the campaign's analysed trials, those of one block are a pair. The evidence is of any number
    of instrumented runs.

    Raises
    ------
    UnusableInput
        There is no block in which the wall time of both conditions is known.
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
