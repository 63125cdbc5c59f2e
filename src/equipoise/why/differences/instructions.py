"""What differs in the instructions outside the kernel, by function."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.why.differences.changes import changes, counted
from equipoise.why.differences.result import Change, Side
from equipoise.why.evidence.evidence_set import Runs
from equipoise.why.evidence.instructions import Instructions


def instructions_change(runs: Runs[Instructions], slower: Side) -> Mapping[str, Change]:
    """The instructions of each function itself; empty unless both conditions have a run."""
    return changes(runs.map(lambda run: run.functions), slower, counted)
