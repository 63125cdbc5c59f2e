"""The stacks of both conditions, drawn by the native observer (``crates/evidence``)."""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from equipoise.model.errors import UnusableInput
from equipoise.why.differences.result import Side
from equipoise.why.evidence.evidence_set import Runs
from equipoise.why.evidence.observed import evidence_program
from equipoise.why.evidence.sampled import Sampled
from equipoise.why.evidence.stacks import Frame

Picture = Literal["flame-graph", "firefox"]


@dataclass(frozen=True, slots=True)
class _MeanStack:
    frames: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Condition:
    name: str
    frames: tuple[Frame, ...]
    stacks: tuple[_MeanStack, ...]


@dataclass(frozen=True, slots=True)
class _Conditions:
    baseline: _Condition
    candidate: _Condition
    slower: Side


def can_be_drawn(runs: Runs[Sampled], slower: Side) -> bool:
    """Whether both conditions have a run, and the slower one a stack."""
    slow = runs.baseline if slower == "baseline" else runs.candidate
    return runs.both and any(run.stacks.stacks for run in slow)


def drawn(picture: Picture, runs: Runs[Sampled], names: tuple[str, str], slower: Side) -> bytes:
    """A file of the mean seconds of each stack over the runs of each condition.

    Parameters
    ----------
    runs
        Profiles, or other stacks with seconds.
    names
        Of the baseline and the candidate.

    Raises
    ------
    UnusableInput
        A condition has no run, or the slower one no stack; or the native observer is missing or
        cannot draw.
    """
    if not can_be_drawn(runs, slower):
        raise UnusableInput(
            "nothing to draw: there is no profile of both conditions",
            hint="observe them with the source `profile`; `equipoise why` tells why it saw nothing",
        )
    conditions = _Conditions(
        _condition(names[0], runs.baseline), _condition(names[1], runs.candidate), slower
    )
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        handed_over, file = Path(folder) / "conditions.json", Path(folder) / "picture"
        handed_over.write_bytes(msgspec.json.encode(conditions))
        command = (evidence_program(), picture, "--output", file, "--", handed_over)
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


def _condition(name: str, runs: Sequence[Sampled]) -> _Condition:
    """Means over the runs: a run that did not see a stack has 0 seconds of it."""
    places: dict[Frame, int] = {}
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    for run in runs:
        frames = run.stacks.frames
        for stack in run.stacks.stacks:
            key = tuple(places.setdefault(frames[place], len(places)) for place in stack.frames)
            sums[key] += stack.weight
    stacks = sorted(sums.items(), key=lambda item: -item[1])
    return _Condition(
        # A command line may hold bytes that are no text.
        name.encode("utf-8", "backslashreplace").decode("utf-8"),
        tuple(places),
        tuple(_MeanStack(frames, weight / len(runs)) for frames, weight in stacks),
    )
