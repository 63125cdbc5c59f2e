"""What differs in sampled stacks: time on a processor, waits and page faults, by place.

Seconds are sums over all threads. Where threads run at once, they are more than the time that
passed; and each thread of a pool that has nothing to do waits all the time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from statistics import fmean
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.why.differences.changes import (
    Change,
    Difference,
    FaultsChange,
    Wait,
    changes,
    counted,
    measured,
)
from equipoise.why.evidence.observer import Function, Sampled, Stacks
from equipoise.why.evidence.sources import Runs, Side

Key = TypeVar("Key")

WHOLE_KERNEL = "kernel"
"""The only kernel entry point that is known where the kernel's stacks are hidden; also of waits
where no frame of the kernel was seen, because threads wait nowhere else."""

LEAST_AGREEMENT, MOST_AGREEMENT = 0.8, 1.25
"""Usual range of the profile's seconds over the accounted ones; beyond it there is a remark."""

MOST_OF_STACKS = 0.8
"""Least part of a function's extra time that its caller has: stacks are cut sometimes."""


def with_profile(difference: Difference, runs: Runs[Sampled]) -> Difference:
    """Add the seconds on a processor; nothing unless both conditions have a run.

    Where the kernel's part of the stacks is hidden, the system time of the campaign's own trials
    stands for all kernel entry points.
    """
    if not runs.both:
        return difference
    slower, split = difference.slower, difference.split
    places = runs.map(lambda run: places_of(run.stacks))

    def by(keys: Callable[[Place], Iterable[Key]]) -> dict[Key, Change]:
        return changes(places.map(lambda run: weights(run, keys)), slower)

    entries = by(lambda place: () if place.entry is None else (place.entry,))
    unseen = (*difference.unseen.get("profile", ()), *_disagreements(runs, split))
    if any(run.hides_kernel for run in runs.every) and "system_s" in split:
        entries = {WHOLE_KERNEL: split["system_s"]}
        unseen += (
            "the kernel's part of the stacks: the system time of the campaign's own trials stands "
            f"for it, under {WHOLE_KERNEL!r}",
        )
    return replace(
        difference,
        on_processor=measured(runs.map(lambda run: run.stacks.weight()), slower),
        entries=entries,
        functions=by(lambda place: place.functions[-1:] if place.entry is None else ()),
        reached=by(lambda place: place.functions),
        callers=_callers(places, slower),
        unseen={**difference.unseen, "profile": unseen} if unseen else difference.unseen,
    )


def _callers(
    places: Runs[tuple[Place, ...]], slower: Side
) -> Mapping[Function, tuple[Function, ...]]:
    """Return by function those that were above it in most stacks of its extra seconds."""

    def pairs(place: Place) -> Iterable[tuple[Function, Function]]:
        return ((place.functions[-1], caller) for caller in place.functions)

    frames_between: dict[tuple[Function, Function], float] = defaultdict(lambda: math.inf)
    for place in chain.from_iterable(places.of(slower)):
        for distance, pair in enumerate(reversed(tuple(pairs(place)))):
            frames_between[pair] = min(frames_between[pair], distance)
    more, less = (
        {
            pair: weight / max(1, len(places.of(side)))
            for pair, weight in weights(chain.from_iterable(places.of(side)), pairs).items()
        }
        for side in (slower, "baseline" if slower == "candidate" else "candidate")
    )
    extra_s = {pair: seconds - less.get(pair, 0.0) for pair, seconds in more.items()}
    callers: dict[Function, list[Function]] = defaultdict(list)
    for function, caller in sorted(extra_s, key=lambda pair: frames_between[pair]):
        all_s = extra_s[function, function]
        if function != caller and extra_s[function, caller] >= MOST_OF_STACKS * all_s > 0.0:
            callers[function].append(caller)
    return {function: tuple(found) for function, found in callers.items()}


def waits_change(runs: Runs[Sampled], slower: Side) -> Mapping[Wait, Change]:
    """Return the seconds of each place where threads wait; empty unless both have a run."""

    def wait(place: Place) -> tuple[Wait]:
        return (Wait(place.entry or WHOLE_KERNEL, place.function),)

    return changes(runs.map(lambda run: weights(places_of(run.stacks), wait)), slower)


def page_faults_change(runs: Runs[Sampled], slower: Side) -> FaultsChange | None:
    """Return the change of the page faults; ``None`` unless both conditions have a run.

    The number is of all page faults; the functions are of sampled ones.
    """
    if not runs.both:
        return None
    if any(run.total is None for run in runs.every):
        count = measured(runs.map(lambda run: run.stacks.weight()), slower)
    else:
        count = counted(runs.map(lambda run: run.total or 0.0), slower)
    by_function = runs.map(
        lambda run: weights(places_of(run.stacks), lambda place: place.functions[-1:])
    )
    return FaultsChange(count=count, by_function=changes(by_function, slower))


class Place(Struct, frozen=True):
    """The end of one stack, and its weight."""

    entry: str | None
    """Kernel entry point; ``None`` if the stack ends outside the kernel."""
    functions: tuple[Function, ...]
    """Functions of the program, the outermost first."""
    weight: float

    @property
    def function(self) -> Function | None:
        """The function that ran or called the kernel; ``None`` if none was seen."""
        return self.functions[-1] if self.functions else None


def places_of(stacks: Stacks) -> tuple[Place, ...]:
    """Return where each of the stacks ends."""
    functions = [None if one.kind in {"kernel", "size"} else one for one in stacks.frames]
    entries = [one.name if one.kind == "kernel" else None for one in stacks.frames]
    return tuple(
        Place(
            entries[stack.frames[-1]] if stack.frames else None,
            tuple(filter(None, (functions[place] for place in stack.frames))),
            stack.weight,
        )
        for stack in stacks.stacks
    )


def weights(places: Iterable[Place], keys: Callable[[Place], Iterable[Key]]) -> Mapping[Key, float]:
    """Return the weight of the places by key; a place counts once for each of its keys."""
    sums: dict[Key, float] = defaultdict(float)
    for place in places:
        # The order of a set differs from process to process, and ties keep this order.
        for key in dict.fromkeys(keys(place)):
            sums[key] += place.weight
    return sums


def _disagreements(runs: Runs[Sampled], split: Mapping[str, Change]) -> Iterator[str]:
    """Yield a remark where the profile's seconds differ from those of the campaign's own trials.

    Nothing is scaled: an observed run is slower, and a short one is sampled rarely.
    """
    if "user_s" not in split or "system_s" not in split:
        return
    user, system = split["user_s"], split["system_s"]
    for name, observed, accounted_s in (
        ("baseline", runs.baseline, user.baseline + system.baseline),
        ("candidate", runs.candidate, user.candidate + system.candidate),
    ):
        profiled_s = fmean(run.stacks.weight() for run in observed)
        ratio = profiled_s / accounted_s if accounted_s > 0 else 1.0
        if not LEAST_AGREEMENT <= ratio <= MOST_AGREEMENT:
            yield (
                f"the profile of the {name} has {profiled_s:.3g} s on a processor, {ratio:.2g} "
                f"times the {accounted_s:.3g} s that its trials used"
            )
