"""What differs in the time on a processor, by the doors of the kernel and by function.

Seconds are sums over all threads: where threads run at once, they are more than what passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeVar

from equipoise.why.differences.changes import changes, measured
from equipoise.why.differences.places import Place, places, weights
from equipoise.why.differences.result import Change, Function, Side
from equipoise.why.evidence.evidence_set import Runs
from equipoise.why.evidence.sampled import Sampled

Key = TypeVar("Key")

WHOLE_KERNEL = "kernel"
"""The one door that is known where the kernel's stacks are hidden."""

LEAST_AGREEMENT, MOST_AGREEMENT = 0.8, 1.25
"""Of the profile's seconds over the accounted ones: beyond, it is said."""


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """The fields of the same names of ``Difference``."""

    on_processor: Change | None = None
    doors: Mapping[str, Change] = field(default_factory=dict)
    functions: Mapping[Function, Change] = field(default_factory=dict)
    reached: Mapping[Function, Change] = field(default_factory=dict)
    doors_by_function: Mapping[tuple[str, Function], Change] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()


def profile_change(runs: Runs[Sampled], slower: Side, split: Mapping[str, Change]) -> ProfileChange:
    """The seconds on a processor; nothing unless both conditions have a run.

    Where the kernel's part of the stacks is hidden, the system time of the campaign's own trials
    stands for all of its doors.
    """
    if not runs.both:
        return ProfileChange()
    ends = runs.map(lambda run: places(run.stacks))
    doors = _by(ends, slower, _doors)
    unseen = list(_disagreements(runs, split))
    hidden = any(run.hides_kernel for run in (*runs.baseline, *runs.candidate))
    if hidden and "system_s" in split:
        doors = {WHOLE_KERNEL: split["system_s"]}
        unseen.append(
            "the kernel's part of the stacks: the system time of the campaign's own trials stands "
            f"for it, under {WHOLE_KERNEL!r}"
        )
    return ProfileChange(
        on_processor=measured(runs.map(lambda run: run.stacks.weight()), slower),
        doors=doors,
        functions=_by(ends, slower, _itself),
        reached=_by(ends, slower, _reached),
        doors_by_function=_by(ends, slower, _door_and_function),
        unseen=tuple(unseen),
    )


def _by(
    found: Runs[tuple[Place, ...]], slower: Side, keys: Callable[[Place], Iterable[Key]]
) -> dict[Key, Change]:
    return changes(found.map(lambda run: weights(run, keys)), slower)


def _doors(place: Place) -> Iterator[str]:
    if place.door is not None:
        yield place.door


def _itself(place: Place) -> Iterator[Function]:
    if place.function is not None and place.door is None:
        yield place.function


def _reached(place: Place) -> Iterable[Function]:
    return place.functions


def _door_and_function(place: Place) -> Iterator[tuple[str, Function]]:
    if place.door is not None and place.function is not None:
        yield place.door, place.function


def _disagreements(runs: Runs[Sampled], split: Mapping[str, Change]) -> Iterator[str]:
    """Where the profile's seconds are others than those of the campaign's own trials.

    Nothing is scaled: an observed run is slower, and a short one is sampled rarely.
    """
    if "user_s" not in split or "system_s" not in split:
        return
    user, system = split["user_s"], split["system_s"]
    for name, observed, accounted_s in (
        ("baseline", runs.baseline, user.baseline + system.baseline),
        ("candidate", runs.candidate, user.candidate + system.candidate),
    ):
        seen_s = fmean(run.stacks.weight() for run in observed)
        if accounted_s > 0 and not LEAST_AGREEMENT <= seen_s / accounted_s <= MOST_AGREEMENT:
            yield (
                f"of the {name} it saw {seen_s:.3g} s on a processor, {seen_s / accounted_s:.2g} "
                f"times the {accounted_s:.3g} s that its trials used"
            )
