"""Reading the committed samples, for the tests of this room."""

from __future__ import annotations

from pathlib import Path

from equipoise.interop.formats import FORMATS
from equipoise.interop.reading import Reading, read_source, read_within_bounds
from equipoise.kinds.imported.assembly import SourceReading, assemble
from equipoise.model.plan import Judgement
from equipoise.model.record import RunRecord

SAMPLES = Path(__file__).parent / "interop" / "samples"


def reading_of(path: Path, form: str | None = None) -> tuple[str, Reading]:
    """The format and the reading of one file."""
    return read_source(read_within_bounds(str(path), path), form, FORMATS)


def imported(*paths: Path, labels: tuple[str, ...] = (), baseline: str | None = None) -> RunRecord:
    """Files as one run."""
    named = []
    for place, path in enumerate(paths):
        form, reading = reading_of(path)
        named.append(SourceReading(str(path), labels[place] if labels else None, form, reading))
    return assemble(named, judgement=Judgement(), folder="/", now=1.7e9, baseline=baseline)


def written(folder: Path, name: str, text: str) -> Path:
    """A file of this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
