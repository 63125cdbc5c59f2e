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

from equipoise.explain.difference.result import Side
from equipoise.explain.evidence.observed import evidence_program
from equipoise.explain.evidence.sampled import Sampled
from equipoise.explain.evidence.stacks import Frame
from equipoise.explain.gathered import Runs
from equipoise.model.errors import UnusableInput

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


def draw(
    picture: Picture, runs: Runs[Sampled], names: tuple[str, str], slower: Side, path: Path
) -> None:
    """Draw the mean seconds of each stack over the runs of each condition into a file.

    Parameters
    ----------
    runs
        Profiles, or other stacks with seconds.
    names
        Of the baseline and the candidate.

    Raises
    ------
    UnusableInput
        A condition has no run, or the slower one no stack; the file cannot be written, or the
        native observer is missing.
    """
    slow = runs.baseline if slower == "baseline" else runs.candidate
    if not runs.both or not any(run.stacks.stacks for run in slow):
        raise UnusableInput(
            f"nothing to draw in {path}: there is no profile of both conditions",
            mend="run `equipoise why` with the source `profile`; what it says of it tells why not",
        )
    conditions = _Conditions(
        _condition(names[0], runs.baseline), _condition(names[1], runs.candidate), slower
    )
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        handed_over = Path(folder) / "conditions.json"
        handed_over.write_bytes(msgspec.json.encode(conditions))
        command = (evidence_program(), picture, "--output", path, "--", handed_over)
        ended = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    if ended.returncode != 0:
        raise UnusableInput(
            ended.stderr.strip().removeprefix("equipoise-evidence: ") or f"{path} was not written",
            mend="name a file that can be written",
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
        name,
        tuple(places),
        tuple(_MeanStack(frames, weight / len(runs)) for frames, weight in stacks),
    )
