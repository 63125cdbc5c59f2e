"""What differs in the instructions outside the kernel, by function."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.explain.difference.changes import changes, counted
from equipoise.explain.difference.result import Change, Side
from equipoise.explain.evidence.instructions import Instructions
from equipoise.explain.gathered import Runs


def instructions_change(runs: Runs[Instructions], slower: Side) -> Mapping[str, Change]:
    """The instructions of each function itself; empty unless both conditions have a run."""
    return changes(runs.map(lambda run: run.functions), slower, counted)
