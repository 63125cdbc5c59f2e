"""Saying on stderr what killed campaigns have left, what was removed of it, and what was not."""

from __future__ import annotations

import sys

from equipoise.measure.leftovers import Clearance, clear_leftovers, unproven_folders
from equipoise.model.safe_text import visible


def report_briefly(clearance: Clearance) -> None:
    """Say before a campaign what was removed, and of what was left the first."""
    for cleared in clearance.cleared:
        _say(cleared.describe())
    if clearance.kept:
        first, further = clearance.kept[0], len(clearance.kept) - 1
        more = f", and {further} more" if further else ""
        _say(f"left alone: {first.path}: {first.reason}{more}; see `equipoise doctor`")


def clear_and_report_all() -> None:
    """Clear leftovers away, and name each that cannot be proven to be Equipoise's own."""
    clearance = clear_leftovers()
    for cleared in clearance.cleared:
        _say(cleared.describe())
    for kept in (*clearance.kept, *unproven_folders()):
        _say(kept.describe())


def _say(text: str) -> None:
    lines = "\n".join(visible(line) for line in text.split("\n"))
    print(f"equipoise: {lines}", file=sys.stderr)
