"""Compare sampled stacks: processor time, waits and page faults; draw pictures of profiles.

Seconds are sums over all threads, so they may exceed the wall time.
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
    changes_by_key,
    count_change,
    measure_change,
)
from equipoise.why.evidence.observer import (
    EVIDENCE_PROGRAM,
    Function,
    SampledStacks,
    Stacks,
    native_file,
)
from equipoise.why.evidence.sources import EvidenceSet, Runs, Side

Key = TypeVar("Key")

WHOLE_KERNEL = "kernel"
"""Entry point of all kernel frames if they are hidden, and of waits without a kernel frame."""

MIN_AGREEMENT, MAX_AGREEMENT = 0.8, 1.25
"""Usual range of the ratio of a profile's seconds to the trials' seconds on a processor."""

MIN_CALLER_SHARE = 0.8
"""Smallest share of a function's extra time for a main caller; not 1, as some stacks are cut."""


def with_profile(difference: Difference, runs: Runs[SampledStacks]) -> Difference:
    """Return the difference with the seconds on a processor, if both conditions have a profile.

    If the kernel is hidden, the only kernel entry point is `WHOLE_KERNEL`. Its seconds are the
    system time of the campaign's own trials.
    """
    if not runs.has_both:
        return difference
    slower, time_parts = difference.slower, difference.time_parts
    paths = runs.map(lambda run: call_paths(run.stacks))

    def changes_of(keys: Callable[[CallPath], Iterable[Key]]) -> dict[Key, Change]:
        return changes_by_key(paths.map(lambda run_paths: weights(run_paths, keys)), slower)

    entry_points = changes_of(lambda path: () if path.entry_point is None else (path.entry_point,))
    unseen = (*difference.unseen.get("profile", ()), *_disagreement_remarks(runs, time_parts))
    if any(run.hides_kernel for run in runs.all_runs) and "system_s" in time_parts:
        entry_points = {WHOLE_KERNEL: time_parts["system_s"]}
        unseen += (
            "the kernel's part of the stacks is missing: the system time of the campaign's own "
            f"trials stands for it, under the name {WHOLE_KERNEL!r}",
        )
    return replace(
        difference,
        on_processor=measure_change(runs.map(lambda run: run.stacks.weight()), slower),
        entry_points=entry_points,
        functions=changes_of(lambda path: path.functions[-1:] if path.entry_point is None else ()),
        inclusive=changes_of(lambda path: path.functions),
        callers=_callers(paths, slower),
        unseen={**difference.unseen, "profile": unseen} if unseen else difference.unseen,
    )


def _callers(
    paths: Runs[tuple[CallPath, ...]], slower: Side
) -> Mapping[Function, tuple[Function, ...]]:
    """Return the callers in most of a function's additional stacks, the nearest first."""

    def pairs_of(path: CallPath) -> Iterable[tuple[Function, Function]]:
        # The pair of the innermost function with itself gives the seconds of this function.
        return ((path.functions[-1], caller) for caller in path.functions)

    frames_between: dict[tuple[Function, Function], float] = defaultdict(lambda: math.inf)
    for path in chain.from_iterable(paths.runs_of(slower)):
        for distance, pair in enumerate(reversed(tuple(pairs_of(path)))):
            frames_between[pair] = min(frames_between[pair], distance)
    slower_s, faster_s = (
        {
            pair: weight / max(1, len(paths.runs_of(side)))
            for pair, weight in weights(chain.from_iterable(paths.runs_of(side)), pairs_of).items()
        }
        for side in (slower, "baseline" if slower == "candidate" else "candidate")
    )
    extra_s = {pair: seconds - faster_s.get(pair, 0.0) for pair, seconds in slower_s.items()}
    callers: dict[Function, list[Function]] = defaultdict(list)
    for function, caller in sorted(extra_s, key=lambda pair: frames_between[pair]):
        function_s = extra_s[function, function]
        if function != caller and extra_s[function, caller] >= MIN_CALLER_SHARE * function_s > 0.0:
            callers[function].append(caller)
    return {function: tuple(nearest_first) for function, nearest_first in callers.items()}


def waits_change(runs: Runs[SampledStacks], slower: Side) -> Mapping[Wait, Change]:
    """Return the change of the seconds of each wait; empty unless both conditions have a run."""

    def wait_of(path: CallPath) -> tuple[Wait]:
        return (Wait(path.entry_point or WHOLE_KERNEL, path.innermost),)

    return changes_by_key(runs.map(lambda run: weights(call_paths(run.stacks), wait_of)), slower)


def page_faults_change(runs: Runs[SampledStacks], slower: Side) -> FaultsChange | None:
    """Return the change of the page faults; ``None`` unless both conditions have a run."""
    if not runs.has_both:
        return None
    if any(run.total is None for run in runs.all_runs):
        count = measure_change(runs.map(lambda run: run.stacks.weight()), slower)
    else:
        count = count_change(runs.map(lambda run: run.total or 0.0), slower)
    by_function = runs.map(
        lambda run: weights(call_paths(run.stacks), lambda path: path.functions[-1:])
    )
    return FaultsChange(count=count, by_function=changes_by_key(by_function, slower))


class CallPath(Struct, frozen=True):
    """One stack, with its kernel entry point as the only kernel frame."""

    entry_point: str | None
    """Kernel entry point; ``None`` if the stack ends outside the kernel."""
    functions: tuple[Function, ...]
    """Functions of the program, the outermost first."""
    weight: float

    @property
    def innermost(self) -> Function | None:
        """The function that ran or called the kernel; ``None`` if no function was seen."""
        return self.functions[-1] if self.functions else None


def call_paths(stacks: Stacks) -> tuple[CallPath, ...]:
    """Return the call path of each stack, without the frame for the size of a block."""
    functions = [None if frame.kind in {"kernel", "size"} else frame for frame in stacks.frames]
    entry_points = [frame.name if frame.kind == "kernel" else None for frame in stacks.frames]
    return tuple(
        CallPath(
            entry_points[stack.frames[-1]] if stack.frames else None,
            tuple(filter(None, (functions[index] for index in stack.frames))),
            stack.weight,
        )
        for stack in stacks.stacks
    )


def weights(
    paths: Iterable[CallPath], keys: Callable[[CallPath], Iterable[Key]]
) -> Mapping[Key, float]:
    """Return for each key the sum of the weights of the paths that have the key."""
    sums: dict[Key, float] = defaultdict(float)
    for path in paths:
        # The order of a set would differ between processes, and so would the order of ties.
        for key in dict.fromkeys(keys(path)):
            sums[key] += path.weight
    return sums


def _disagreement_remarks(runs: Runs[SampledStacks], parts: Mapping[str, Change]) -> Iterator[str]:
    """Yield a remark if the profile has more or fewer seconds than the campaign's own trials."""
    if "user_s" not in parts or "system_s" not in parts:
        return
    user, system = parts["user_s"], parts["system_s"]
    for side, profiled_runs, accounted_s in (
        ("baseline", runs.baseline, user.baseline + system.baseline),
        ("candidate", runs.candidate, user.candidate + system.candidate),
    ):
        profiled_s = fmean(run.stacks.weight() for run in profiled_runs)
        ratio = profiled_s / accounted_s if accounted_s > 0 else 1.0
        if not MIN_AGREEMENT <= ratio <= MAX_AGREEMENT:
            yield (
                f"the profile of the {side} has {profiled_s:.3g} s on a processor, {ratio:.2g} "
                f"times the {accounted_s:.3g} s that its trials used"
            )


Picture = Literal["flame-graph", "firefox"]


def draw_profiles(
    picture: Picture, evidence: EvidenceSet, names: tuple[str, str], slower: Side
) -> bytes:
    """Return a file that shows the profiles of both conditions: mean seconds of each stack.

    ``flame-graph`` is one differential flame graph in SVG. Widths show the slower condition. Red
    functions take more time in the slower condition, without their callees; blue functions take
    less. Frames narrower than a thousandth of the picture are left out.

    ``firefox`` is one profile for https://profiler.firefox.com, with a process for each condition.
    Weights are milliseconds of the mean run. Samples are sorted by weight, not by time.

    ``names`` are the names of the baseline and the candidate. Raise `UnusableInput` if there is no
    profile of both conditions, or the native observer is missing.
    """
    runs = evidence.profile
    if not can_be_drawn(runs, slower):
        raise UnusableInput(
            "cannot draw a picture: there is no profile of both conditions",
            hint=f"run `equipoise why` with {option('sources')} profile; it reports why a profile "
            "is missing",
        )
    baseline_name, candidate_name = names
    conditions = {
        "baseline": _mean_profile(baseline_name, runs.baseline),
        "candidate": _mean_profile(candidate_name, runs.candidate),
        "slower": slower,
    }
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        stacks_file, file = Path(folder) / "conditions.json", Path(folder) / "picture"
        stacks_file.write_bytes(msgspec.json.encode(conditions))
        command = (native_file(EVIDENCE_PROGRAM), picture, "--output", file, "--", stacks_file)
        result = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if result.returncode == 0:
            return file.read_bytes()
    raise UnusableInput(
        f"the {picture} picture could not be drawn: {result.stderr.strip()}",
        hint="install Equipoise again; if the error stays, report it",
    )


def can_be_drawn(runs: Runs[SampledStacks], slower: Side) -> bool:
    """Return whether both conditions have a run, and the slower condition has a stack."""
    return runs.has_both and any(run.stacks.stacks for run in runs.runs_of(slower))


def _mean_profile(name: str, runs: Sequence[SampledStacks]) -> dict[str, object]:
    """Return the mean seconds of each stack; a run without the stack counts as 0."""
    indices: dict[Function, int] = {}
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    for run in runs:
        frames = run.stacks.frames
        for stack in run.stacks.stacks:
            key = tuple(indices.setdefault(frames[index], len(indices)) for index in stack.frames)
            sums[key] += stack.weight
    stacks = sorted(sums.items(), key=lambda item: -item[1])
    return {
        # A command line may hold bytes that are not text.
        "name": name.encode("utf-8", "backslashreplace").decode("utf-8"),
        "frames": tuple(indices),
        "stacks": [{"frames": frames, "seconds": weight / len(runs)} for frames, weight in stacks],
    }
