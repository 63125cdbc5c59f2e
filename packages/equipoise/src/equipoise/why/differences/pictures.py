"""Pictures of both profiles, drawn by the native observer (``crates/evidence``)."""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option
from equipoise.why.evidence.observer import EVIDENCE_PROGRAM, Function, Sampled, native_file
from equipoise.why.evidence.sources import EvidenceSet, Runs, Side

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
