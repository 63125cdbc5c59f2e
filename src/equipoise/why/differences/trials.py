"""The gap itself, and what the usual accounts of the campaign's own trials say of it.

No source was at work in these trials. Each change is the mean of the differences within blocks,
with Student's t interval over the blocks: means, for then the parts of the gap add up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from equipoise.model.errors import UnusableInput
from equipoise.model.record import Accounting, Trial
from equipoise.why.differences.changes import Compute, paired_counted, paired_measured
from equipoise.why.differences.result import Change, Side
from equipoise.why.evidence.evidence_set import Runs
from equipoise.why.evidence.split import Split
from equipoise.why.evidence.split import split as split_of

One = TypeVar("One")

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


@dataclass(frozen=True, slots=True)
class TrialsChange:
    """The fields of the same names of ``Difference``."""

    slower: Side
    gap: Change
    split: Mapping[str, Change]
    accounts: Mapping[str, Change]
    unseen: Mapping[str, tuple[str, ...]]


def trials_change(trials: Runs[Trial]) -> TrialsChange:
    """The gap between the analysed trials of both conditions, paired by their blocks.

    The slower condition is that with more time in the typical block: the sign of the median
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
    slower = _slower(walls)
    parts, unseen_parts = _split(paired, slower)
    accounts, unseen_accounts = _accounts(paired, slower)
    unseen = {
        "trials": _stopped(paired),
        "split": unseen_parts,
        "accounts": unseen_accounts,
    }
    return TrialsChange(
        slower=slower,
        gap=paired_measured(walls, slower),
        split=parts,
        accounts=accounts,
        unseen={source: words for source, words in unseen.items() if words},
    )


def _paired(trials: Runs[Trial]) -> Runs[Trial]:
    """One trial of each condition for each block that has both, in the order of the blocks."""

    def known(side: tuple[Trial, ...]) -> dict[int, Trial]:
        return {
            trial.block: trial
            for trial in side
            if trial.phase == "measured"
            and not trial.washout
            and trial.accounting.wall_s is not None
        }

    baseline, candidate = known(trials.baseline), known(trials.candidate)
    blocks = sorted(baseline.keys() & candidate.keys())
    return Runs(
        tuple(baseline[block] for block in blocks), tuple(candidate[block] for block in blocks)
    )


def _wall_s(trial: Trial) -> float:
    return trial.accounting.wall_s or 0.0


def _slower(walls: Runs[float]) -> Side:
    differences = [
        candidate - baseline
        for baseline, candidate in zip(walls.baseline, walls.candidate, strict=True)
    ]
    return "candidate" if (median(differences) or sum(differences)) >= 0 else "baseline"


def _stopped(paired: Runs[Trial]) -> tuple[str, ...]:
    both = (*paired.baseline, *paired.candidate)
    stopped = sum(trial.timed_out for trial in both)
    if not stopped:
        return ()
    of = f"{stopped} of {len(both)} trials"
    return (f"how long {of} would have run: they were stopped at the time limit",)


def _split(paired: Runs[Trial], slower: Side) -> tuple[dict[str, Change], tuple[str, ...]]:
    """Each part that is known in every trial: the others would be of other trials."""

    def of(trial: Trial) -> Split:
        account = trial.accounting
        return split_of(
            _wall_s(trial), account.user_s, account.sys_s, trial.covariates.get("run_delay_s")
        )

    splits = Runs(tuple(map(of, paired.baseline)), tuple(map(of, paired.candidate)))
    takes: dict[str, Callable[[Split], float | None]] = {
        "user_s": lambda one: one.user_s,
        "system_s": lambda one: one.system_s,
        "waiting_s": lambda one: one.waiting_s,
        "queueing_s": lambda one: one.queueing_s,
    }
    changes = {
        name: change
        for name, take in takes.items()
        if (change := _known(splits, take, slower, paired_measured)) is not None
    }
    both = (*splits.baseline, *splits.candidate)
    return changes, tuple(dict.fromkeys(words for one in both for words in one.unseen))


def _accounts(paired: Runs[Trial], slower: Side) -> tuple[dict[str, Change], tuple[str, ...]]:
    accountings = Runs(
        tuple(trial.accounting for trial in paired.baseline),
        tuple(trial.accounting for trial in paired.candidate),
    )
    both = (*accountings.baseline, *accountings.candidate)
    counters = dict.fromkeys(name for one in both for name in one.counters)
    takes: dict[str, Callable[[Accounting], float | None]] = {
        **{name: _field(name) for name in ACCOUNTS},
        **{name: _counter(name) for name in counters},
    }
    changes: dict[str, Change] = {}
    unseen: list[str] = []
    for name, take in takes.items():
        change = _known(accountings, take, slower, paired_counted)
        if change is not None:
            changes[name] = change
            continue
        reasons = dict.fromkeys(one.unknown[name] for one in both if name in one.unknown)
        unseen += [f"{name}: {reason}" for reason in reasons]
    return changes, tuple(unseen)


def _field(name: str) -> Callable[[Accounting], float | None]:
    return lambda one: getattr(one, name)


def _counter(name: str) -> Callable[[Accounting], float | None]:
    return lambda one: one.counters.get(name)


def _known(
    runs: Runs[One], take: Callable[[One], float | None], slower: Side, compute: Compute
) -> Change | None:
    """The change of what every run knows; ``None`` if one does not."""

    def known(side: tuple[One, ...]) -> tuple[float, ...]:
        return tuple(value for one in side if (value := take(one)) is not None)

    values = Runs(known(runs.baseline), known(runs.candidate))
    if len(values.baseline) < len(runs.baseline) or len(values.candidate) < len(runs.candidate):
        return None
    return compute(values, slower)
