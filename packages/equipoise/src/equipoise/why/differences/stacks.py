"""What differs in sampled stacks, by place: processor time, waits, page faults; their pictures.

Seconds are sums over all threads. Where threads run at once, they are more than the time that
passed; and each thread of a pool that has nothing to do waits all the time.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option
from equipoise.why.differences.changes import (
    Change,
    Difference,
    FaultsChange,
    Wait,
    changes,
    counted,
    measured,
)
from equipoise.why.evidence.observer import EVIDENCE_PROGRAM, Function, Sampled, Stacks, native_file
from equipoise.why.evidence.sources import EvidenceSet, Runs, Side

Key = TypeVar("Key")

WHOLE_KERNEL = "kernel"
"""The only kernel entry point that is known where the kernel's stacks are hidden; also of waits
where no frame of the kernel was seen, because threads wait nowhere else."""

MIN_AGREEMENT, MAX_AGREEMENT = 0.8, 1.25
"""Usual range of the profile's seconds over the accounted ones; beyond it there is a remark."""

MIN_CALLER_SHARE = 0.8
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
        if function != caller and extra_s[function, caller] >= MIN_CALLER_SHARE * all_s > 0.0:
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
        if not MIN_AGREEMENT <= ratio <= MAX_AGREEMENT:
            yield (
                f"the profile of the {name} has {profiled_s:.3g} s on a processor, {ratio:.2g} "
                f"times the {accounted_s:.3g} s that its trials used"
            )


Picture = Literal["flame-graph", "firefox"]


def draw(picture: Picture, evidence: EvidenceSet, names: tuple[str, str], slower: Side) -> bytes:
    """Return a file with the profiles of both conditions: mean seconds of each stack.

    ``flame-graph`` is one differential flame graph in SVG. Widths are of the slower condition. Red
    is a function in which itself, without what it calls, the slower condition spends more; blue is
    one in which it spends less. Frames narrower than a thousandth of the whole are left out.

    ``firefox`` is one profile for https://profiler.firefox.com, with a process for each condition.
    Weights are milliseconds of the mean run. The samples of a condition follow each other, the
    heaviest stack first: their order says nothing of when they were taken.

    ``names`` are those of the baseline and the candidate. Raise `UnusableInput` if there is no
    profile of both conditions, or the native observer is missing.
    """
    runs = evidence.profile
    if not can_be_drawn(runs, slower):
        raise UnusableInput(
            "nothing to draw: there is no profile of both conditions",
            hint=f"observe both with {option('sources')} profile; `equipoise why` says what it "
            "could not see",
        )
    conditions = {
        "baseline": _condition(names[0], runs.baseline),
        "candidate": _condition(names[1], runs.candidate),
        "slower": slower,
    }
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        stacks, file = Path(folder) / "conditions.json", Path(folder) / "picture"
        stacks.write_bytes(msgspec.json.encode(conditions))
        command = (native_file(EVIDENCE_PROGRAM), picture, "--output", file, "--", stacks)
        ended = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if ended.returncode == 0:
            return file.read_bytes()
    raise UnusableInput(
        f"the {picture} could not be drawn: {ended.stderr.strip()}",
        hint="install the package again, or report it",
    )


def can_be_drawn(runs: Runs[Sampled], slower: Side) -> bool:
    """Return whether both conditions have a run, and the slower one has a stack."""
    return runs.both and any(run.stacks.stacks for run in runs.of(slower))


def _condition(name: str, runs: Sequence[Sampled]) -> dict[str, object]:
    """Return means over the runs: a run that did not see a stack has 0 seconds of it."""
    places: dict[Function, int] = {}
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    for run in runs:
        frames = run.stacks.frames
        for stack in run.stacks.stacks:
            key = tuple(places.setdefault(frames[place], len(places)) for place in stack.frames)
            sums[key] += stack.weight
    stacks = sorted(sums.items(), key=lambda item: -item[1])
    return {
        # A command line may hold bytes that are no text.
        "name": name.encode("utf-8", "backslashreplace").decode("utf-8"),
        "frames": tuple(places),
        "stacks": [{"frames": frames, "seconds": weight / len(runs)} for frames, weight in stacks],
    }
