"""The options that write what both conditions did as files to look at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from equipoise.cli.output_files import check_folder, write_file
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.model.safe_text import visible
from equipoise.why.differences.pictures import Picture, can_be_drawn, draw
from equipoise.why.explanation import GapEvidence, evidence_of_gap
from equipoise.why.gap import choose_gap

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


Pictures = dict[Path, Picture]
"""What each file shows."""


def picture_options(function: Decorated) -> Decorated:
    """Add ``--flame-graph`` and ``--firefox``."""
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


def pictures_of(values: dict[str, Any]) -> Pictures:
    """Return the pictures that the options ask for.

    Raises
    ------
    UnusableInput
        The folder of a file cannot be written to.
    """
    options: dict[str, Picture] = {"flame_graph": "flame-graph", "firefox": "firefox"}
    pictures = {values[name]: kind for name, kind in options.items() if values[name] is not None}
    for path in pictures:
        check_folder(path)
    return pictures


def say_that_none_is_drawn(pictures: Pictures) -> None:
    """Name the files that are not written, because there is nothing to explain."""
    for path in pictures:
        print(f"equipoise: {visible(str(path))} is not written", file=sys.stderr)


def write_pictures(pictures: Pictures, evidence: GapEvidence) -> None:
    """Draw the pictures and write their files.

    Raises
    ------
    UnusableInput
        There is no profile of both conditions, or a file cannot be written.
    """
    for path, picture in pictures.items():
        write_file(path, _draw(picture, evidence))


def flame_graph_of(record: RunRecord, document: ResultDocument) -> bytes | None:
    """Return the flame graph of the gap that the document explains; ``None`` without profiles."""
    extra = document.extra_time
    if extra is None:
        return None
    evidence = evidence_of_gap(record, choose_gap(record, extra.baseline, extra.candidate))
    if not can_be_drawn(evidence.evidence.profile, evidence.difference.slower):
        return None
    return _draw("flame-graph", evidence)


def _draw(picture: Picture, evidence: GapEvidence) -> bytes:
    comparison = evidence.gap.comparison
    names = (comparison.baseline, comparison.candidate)
    return draw(picture, evidence.evidence, names, evidence.difference.slower)
