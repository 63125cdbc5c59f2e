"""The gap itself, and what the accounts of the campaign's own trials say of it.

No trial here ran under a source. Each change is the mean of the differences within blocks, with
Student's t interval over the blocks: means, because then the parts of the gap add up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter, methodcaller, sub
from statistics import median
from typing import TypeVar

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.record import Accounting, Trial
from equipoise.why.differences.changes import (
    Change,
    Compute,
    Difference,
    paired_counted,
    paired_measured,
)
from equipoise.why.evidence.sources import Runs, Side

Run = TypeVar("Run")

PARTS = ("user_s", "system_s", "waiting_s", "queueing_s")
ACCOUNTS = (
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "block_reads",
    "block_writes",
    "max_rss_bytes",
    "output_bytes",
)


def trials_difference(trials: Runs[Trial]) -> Difference:
    """Return the gap between the analysed trials of both conditions, paired by their blocks.

    The slower condition is the one with more time in the typical block: the sign of the median
    difference. A trial that was stopped at its time limit counts with the time until then.

    Raises
    ------
    UnusableInput
        There is no block in which the wall time of both is known.
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
