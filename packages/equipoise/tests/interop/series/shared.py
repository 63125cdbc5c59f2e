"""Reading series from files, for the tests of this room and of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.interop.reading import read_within_bounds
from equipoise.interop.series import SERIES_FORMATS
from equipoise.interop.series.reading import read_series
from equipoise.model.series import ImportedSeries

SAMPLES = Path(__file__).parent / "samples"


def series_of(*paths: Path, form: str | None = None) -> tuple[ImportedSeries, ...]:
    """The series in these files."""
    files = [read_within_bounds(str(path), path) for path in paths]
    return read_series(files, form, SERIES_FORMATS)


def table(folder: Path, values: Sequence[float], name: str = "loop.csv") -> Path:
    """A CSV with these values for the commits v1, v2, …"""
    rows = "".join(f"v{number},{value}\n" for number, value in enumerate(values, start=1))
    path = folder / name
    path.write_text(f"commit,value\n{rows}", encoding="utf-8")
    return path
