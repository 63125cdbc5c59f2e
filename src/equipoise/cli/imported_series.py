"""Series of other tools as ``equipoise history --import`` shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from msgspec.structs import replace

from equipoise.cli.output_options import OutputOptions, write_output
from equipoise.cli.results import CampaignResult
from equipoise.design.command_line import shell_line
from equipoise.model.history import SeriesResult


def read_imported(
    files: Sequence[str],
    form: str | None,
    *,
    min_effect: float,
    command: Sequence[str] = (),
    build: str | None = None,
) -> SeriesResult:
    """Read series of other tools, and say where their level may have changed.

    Parameters
    ----------
    files
        Names of files and folders, or patterns such as ``results/*.json``.
    form
        Name of the format; the content of each file tells if ``None``.
    min_effect
        Percent by which two levels differ at least, for a suspicion.
    command, build
        Command and build line of the lines that confirm; empty: a placeholder.

    Raises
    ------
    UnusableInput
        A file cannot be read, or holds no values over commits.
    """
    from equipoise.analysis.series import series_result
    from equipoise.interop.reading import read_within_bounds
    from equipoise.interop.series import SERIES_FORMATS
    from equipoise.interop.series.reading import read_series

    names = [name for file in files for name in _named(file)]
    sources = [read_within_bounds(name, Path(name)) for name in names]
    series = read_series(sources, form, SERIES_FORMATS)
    again = ["equipoise", "history", "--import", *files]
    if form is not None:
        again += ["--format", form]
    again += ["--min-effect", f"{min_effect:.12g}"]
    if build is not None:
        again += ["--build", build]
    if command:
        again += ["--", *command]
    return series_result(
        series, min_effect=min_effect, again=shell_line(again), command=command, build=build
    )


def beside(result: CampaignResult, imported: SeriesResult) -> CampaignResult:
    """Return the result of a history with series of other tools beside its curve."""
    history = result.document.history
    assert history is not None, "only a history has series of other tools beside it"
    document = replace(result.document, history=replace(history, series=imported.series))
    return replace(result, document=document)


def _named(pattern: str) -> list[str]:
    """Return the files that a pattern names, 9 before 10; the name itself of one that is there."""
    if Path(pattern).exists():
        return [pattern]
    return sorted(glob(pattern), key=_by_numbers) or [pattern]


def _by_numbers(name: str) -> list[str | int]:
    """Return a key in which numbers within names stand by their size."""
    return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name)]


def show_imported(result: SeriesResult, output: OutputOptions) -> int:
    """Write imported series to each place, and print them."""
    from equipoise.report.builders.series import series_document
    from equipoise.report.json_document import encode

    write_output(series_document(result), lambda: encode(result) + b"\n", output)
    return 0
