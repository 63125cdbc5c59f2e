"""Series of other tools as ``equipoise history --import`` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.cli.output_options import OutputOptions, write_output
from equipoise.design.command_line import shell_line
from equipoise.model.series import SeriesResult


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

    sources = [read_within_bounds(file, Path(file)) for file in files]
    series = read_series(sources, form, SERIES_FORMATS)
    again = ["equipoise", "history"]
    for file in files:
        again += ["--import", file]
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


def show_imported(result: SeriesResult, output: OutputOptions) -> int:
    """Write imported series to each place, and print them."""
    from equipoise.report.builders.series import series_document
    from equipoise.report.json_document import encode

    write_output(series_document(result), lambda: encode(result) + b"\n", output)
    return 0
