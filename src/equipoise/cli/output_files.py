"""Files that a command writes: checked before the work, replaced as a whole.

The ending of a report's name decides its form.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.analysis.sequences import sequences_of, sequences_of_document
from equipoise.design.command_line import command_of_plan
from equipoise.figures.save import require_figures
from equipoise.files.writing import write_whole
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise.report.builders.result import CampaignReport
    from equipoise.report.document import Document

FORMS = (".html", ".htm", ".md", ".tex", ".csv")
"""Endings of a report's name."""
FIGURE_FORMS = ("html", "svg", "png")
MOST_LETTERS = 80
"""Number of letters of a run's id in the name of its folder."""

Reported = tuple[ResultDocument, RunRecord | None]
"""A result and its campaign, as they are reported; ``None`` where only the document is left."""


def check_folder(path: Path) -> None:
    """Check that a file can be written at a path, before the work for it is done.

    Raises
    ------
    UnusableInput
        There is no such folder, or the path is one itself.
    """
    if not path.resolve().parent.is_dir():
        raise UnusableInput(
            f"{path}: there is no folder {path.resolve().parent}", hint="make it first"
        )
    if path.is_dir():
        raise UnusableInput(f"{path} is a folder", hint="name a file in it")


def check_report(path: Path) -> None:
    """Check that a report can be written at a path, before the work for it is done.

    Raises
    ------
    UnusableInput
        The ending is of no form, the folder is missing, or nothing can be drawn here.
    """
    if path.suffix.lower() not in FORMS:
        raise UnusableInput(
            f"{path}: no report is written as '{path.suffix}'",
            hint=f"end the name in {', '.join(FORMS)}",
        )
    check_folder(path)
    if has_figures(path):
        require_figures()


def has_figures(report: Path) -> bool:
    """Return whether a report in this file has figures."""
    return report.suffix.lower() in (".html", ".htm")


def write_file(path: Path, content: bytes) -> None:
    """Replace a file by new content; where that fails, the old file is kept.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise UnusableInput(
            f"cannot write {path}: {error.strerror}",
            hint="nothing is lost: the campaign is in the ledger; name another file",
        ) from error


def write_json(file: str | None, to_json: Callable[[], bytes]) -> None:
    """Write what ``--json`` asks for: to stdout for ``-``, nowhere for ``None``.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    if file == "-":
        sys.stdout.buffer.write(to_json())
    elif file is not None:
        write_file(Path(file), to_json())


def write_report(path: Path, campaigns: Sequence[Reported]) -> None:
    """Write campaigns into one file, in the form of its ending.

    Raises
    ------
    UnusableInput
        The file cannot be written, or altair or vl-convert is not installed.
    """
    from equipoise.report.builders.result import campaign_documents

    figures = has_figures(path)
    reports = [report_of(*campaign, figures=figures) for campaign in campaigns]
    write_documents(path, campaign_documents(reports))


def report_of(
    document: ResultDocument, record: RunRecord | None, *, figures: bool
) -> CampaignReport:
    """Return what a report says of a campaign, with what its figures are made of if it has any.

    Raises
    ------
    UnusableInput
        There are figures, and altair or vl-convert is not installed.
    """
    from equipoise.report.builders.result import CampaignReport

    command = None if record is None else command_of_plan(record.plan)
    if not figures:
        return CampaignReport(document, command=command)
    require_figures()
    from equipoise.studies.catalogue import analysis_of

    study = analysis_of(document.run.study)
    return CampaignReport(
        document,
        sequences=sequences_of_document(document) if record is None else sequences_of(record),
        command=command,
        study_figures=() if study is None else tuple(study.figures(document)),
        flame_graph=None if record is None else flame_graph_of(record, document),
    )


def flame_graph_of(record: RunRecord, document: ResultDocument) -> bytes | None:
    """Return the flame graph of the gap that the document explains; ``None`` without profiles."""
    from equipoise.why.differences.pictures import can_be_drawn, draw
    from equipoise.why.explanation import evidence_of_gap
    from equipoise.why.gap import choose_gap

    extra = document.extra_time
    if extra is None:
        return None
    names = extra.baseline, extra.candidate
    gap = evidence_of_gap(record, choose_gap(record, *names))
    slower = gap.difference.slower
    if not can_be_drawn(gap.evidence.profile, slower):
        return None
    return draw("flame-graph", gap.evidence, names, slower)


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """Write documents of any kind into one file, in the form of its ending.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    text = rendered(documents, path.suffix.lower())
    write_file(path, text.encode("utf-8", "backslashreplace"))


def rendered(documents: Sequence[Document], form: str) -> str:
    """Return documents as one text, in one of the `FORMS`."""
    from equipoise.report.renderers.csv import to_csv
    from equipoise.report.renderers.latex import to_latex
    from equipoise.report.renderers.markdown import to_markdown

    match form:
        case ".md":
            return "\n".join(map(to_markdown, documents))
        case ".tex":
            return "\n".join(map(to_latex, documents))
        case ".csv":
            return to_csv(documents)
    from equipoise.report.renderers import html

    return html.page(documents)


def folder_name(number: int, run_id: str) -> str:
    """Return the folder of one run among several; the run's id may hold any text."""
    return f"{number}-{re.sub(r'[^A-Za-z0-9-]+', '_', run_id)[:MOST_LETTERS]}"


def save_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write figures into a folder, which is made; of one name, the second has a 2 behind it.

    Raises
    ------
    UnusableInput
        The folder cannot be made or written to.
    """
    from equipoise.figures.save import save

    _make(folder)
    files: list[Path] = []
    names: Counter[str] = Counter()
    for figure in figures:
        names[figure.name] += 1
        suffix = f"_{names[figure.name]}" if names[figure.name] > 1 else ""
        for form in FIGURE_FORMS:
            files.append(folder / f"{figure.name}{suffix}.{form}")
            save(figure.chart, files[-1])
    return files


def save_flame_graph(picture: bytes, folder: Path) -> None:
    """Write a flame graph, an SVG, into a folder, which is made, and the same as PNG.

    Raises
    ------
    UnusableInput
        The folder cannot be made or written to.
    """
    from equipoise.figures.save import pixels_of

    _make(folder)
    write_file(folder / "flame_graph.svg", picture)
    write_file(folder / "flame_graph.png", pixels_of(picture))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInput(
            f"cannot make the folder {folder}: {error.strerror}",
            hint="name another one with --figures",
        ) from None
