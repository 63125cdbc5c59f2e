"""The options that write what both conditions did as files to look at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from equipoise.cli.output_files import check_folder, write_file
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.model.safe_text import visible
from equipoise.why.differences.pictures import can_be_drawn, firefox_profile, flame_graph
from equipoise.why.explanation import GapEvidence, evidence_of_gap
from equipoise.why.gap import choose_gap

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Pictures(Struct, frozen=True):
    """Where each one goes; ``None`` for nowhere."""

    flame_graph: Path | None
    firefox: Path | None

    def files(self) -> tuple[Path, ...]:
        """Those that are wanted."""
        return tuple(path for path in (self.flame_graph, self.firefox) if path is not None)


def picture_options(function: Decorated) -> Decorated:
    """``--flame-graph`` and ``--firefox``."""
    for option in (
        click.option(
            "--firefox",
            metavar="FILE.json",
            type=click.Path(path_type=Path),
            help="Write both profiles for profiler.firefox.com.",
        ),
        click.option(
            "--flame-graph",
            metavar="FILE.svg",
            type=click.Path(path_type=Path),
            help="Draw both profiles as one flame graph: red where the slower one takes more.",
        ),
    ):
        function = option(function)
    return function


def pictures_of(given: dict[str, Any]) -> Pictures:
    """Which pictures are wanted, as the options say.

    Raises
    ------
    UnusableInput
        One cannot be written where it is to go.
    """
    wanted = Pictures(given["flame_graph"], given["firefox"])
    for path in wanted.files():
        check_folder(path)
    return wanted


def say_that_none_is_drawn(wanted: Pictures) -> None:
    """Name the files that were asked for, where there is nothing to explain."""
    for path in wanted.files():
        print(f"equipoise: {visible(str(path))} is not written", file=sys.stderr)


def write_pictures(wanted: Pictures, evidence: GapEvidence) -> None:
    """Write them.

    Raises
    ------
    UnusableInput
        There is no profile of both conditions, or a file cannot be written.
    """
    names = _names(evidence)
    slower = evidence.difference.slower
    if wanted.flame_graph is not None:
        write_file(wanted.flame_graph, flame_graph(evidence.evidence, names, slower))
    if wanted.firefox is not None:
        write_file(wanted.firefox, firefox_profile(evidence.evidence, names, slower))


def flame_graph_of(record: RunRecord, document: ResultDocument) -> bytes | None:
    """Return the flame graph of the gap that the document explains; ``None`` without profiles."""
    extra = document.extra_time
    if extra is None:
        return None
    evidence = evidence_of_gap(record, choose_gap(record, extra.baseline, extra.candidate))
    if not can_be_drawn(evidence.evidence.profile, evidence.difference.slower):
        return None
    return flame_graph(evidence.evidence, _names(evidence), evidence.difference.slower)


def _names(evidence: GapEvidence) -> tuple[str, str]:
    return evidence.gap.comparison.baseline, evidence.gap.comparison.candidate
