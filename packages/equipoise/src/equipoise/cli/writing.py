"""Functions that write the files of a command: documents, reports and figures.

A document is a result in an order for readers. A complete new file replaces the old file, so a file
is never half written.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from equipoise.cli.options.outputs import OutputOptions, has_figures
from equipoise.cli.streams import say
from equipoise.files.writing import write_or_refuse
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise.report.builders.result import ReportInput
    from equipoise.report.document import Document, Figures

FIGURE_EXTENSIONS = ("html", "svg", "png")
"""Formats in which each figure is written."""
MAX_ID_LETTERS = 80
"""Maximum length of a run's id in the name of its folder."""
ReportedCampaign = tuple[ResultDocument, RunRecord | None]
"""A result and the record of its campaign; no record if the result is from a JSON file."""


def write_output(document: Document, to_json: Callable[[], bytes], output: OutputOptions) -> None:
    """Write a document that is not about one campaign to the requested files, and print it.

    Nothing is printed if the JSON goes to stdout. Raise `UnusableInput` if a file cannot be
    written.
    """
    if output.report_file is not None:
        write_documents(output.report_file, [_with_time_and_machine(document)])
    if output.figures is not None:
        from equipoise.report.document import figures_of

        save_figures(figures_of(document), output.figures)
    write_json(output.json_file, to_json)
    if output.prints_result:
        from equipoise.report.renderers.terminal import print_document

        print_document(document, color=output.color, form=output.terminal_form)


def _with_time_and_machine(document: Document) -> Document:
    from equipoise.measure.environment import snapshot
    from equipoise.report.builders.origin import machine_of, minute_of

    if document.origin is None:
        return document
    now = minute_of(datetime.now(UTC).isoformat())
    origin = replace(document.origin, when=f"computed {now}", machine=machine_of(snapshot()))
    return replace(document, origin=origin)


def write_file(path: Path, content: bytes) -> None:
    """Replace the content of a file; if that fails, the old content is kept.

    Raise `UnusableInput` if the file cannot be written.
    """
    hint = "name another file; every measured trial is in the ledger"
    write_or_refuse(path, content, hint)


def write_json(file: str | None, to_json: Callable[[], bytes]) -> None:
    """Write JSON to a file, or to stdout for ``-``; do nothing for ``None``.

    Raise `UnusableInput` if the file cannot be written.
    """
    if file == "-":
        sys.stdout.buffer.write(to_json())
    elif file is not None:
        write_file(Path(file), to_json())


def write_report(path: Path, campaigns: Sequence[ReportedCampaign]) -> None:
    """Write campaigns into one file, in the format that its extension selects.

    Raise `UnusableInput` if the file cannot be written, or altair or vl-convert is not installed.
    """
    from equipoise.report.builders.result import campaign_documents

    with_figures = has_figures(path)
    inputs = [report_input_of(*campaign, with_figures=with_figures) for campaign in campaigns]
    write_documents(path, campaign_documents(inputs))


def report_input_of(
    result: ResultDocument, record: RunRecord | None, *, with_figures: bool
) -> ReportInput:
    """Return the input of a campaign's report; the data for figures only if ``with_figures``.

    Raise `UnusableInput` if figures are requested, and altair or vl-convert is not installed.
    """
    from equipoise.analysis.sequences import sequences_of, sequences_of_document
    from equipoise.report.builders.result import ReportInput

    if not with_figures:
        return ReportInput(result)
    from equipoise.shared.pictures import require_figures
    from equipoise.studies.catalogue import analysis_of

    require_figures()
    study_analysis = analysis_of(result.run.study)
    return ReportInput(
        result,
        sequences=sequences_of_document(result) if record is None else sequences_of(record),
        study_figures=() if study_analysis is None else tuple(study_analysis.figures(result)),
        flame_graph=None if record is None else flame_graph_of(record, result),
    )


def flame_graph_of(record: RunRecord, result: ResultDocument) -> bytes | None:
    """Return the flame graph of the explained gap as SVG; ``None`` if there is no profile."""
    from equipoise.why.differences.stacks import can_be_drawn, draw_profiles
    from equipoise.why.explanation import evidence_of_gap
    from equipoise.why.gap import choose_gap

    extra_time = result.extra_time
    if extra_time is None:
        return None
    names = extra_time.baseline, extra_time.candidate
    gap = evidence_of_gap(record, choose_gap(record, *names))
    slower = gap.difference.slower
    if not can_be_drawn(gap.evidence.profile, slower):
        return None
    return draw_profiles("flame-graph", gap.evidence, names, slower)


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """Write documents of any kind into one file, in the format that its extension selects.

    Raise `UnusableInput` if the file cannot be written.
    """
    extension = path.suffix.lower()
    if extension == ".md":
        text = markdown_with_figures(documents, path)
    else:
        text = render_documents(documents, extension)
    write_file(path, text.encode("utf-8", "backslashreplace"))


def markdown_with_figures(documents: Sequence[Document], path: Path) -> str:
    """Return documents as Markdown for the file ``path``; write the figures next to this file.

    If altair or vl-convert is not installed, print a message and leave out the figures. Raise
    `UnusableInput` if a figure cannot be written.
    """
    from equipoise.figures.save import save
    from equipoise.report.renderers.markdown import to_markdown
    from equipoise.shared.pictures import require_figures

    name_counts: Counter[str] = Counter()

    def write_svgs(figures: Figures) -> Iterator[tuple[str, str]]:
        try:
            require_figures()
        except UnusableInput as missing:
            # The text is useful without figures.
            say(f"{path} has no figure: {missing.what}", missing.hint)
            return
        for figure in figures.figures():
            name_counts[figure.name] += 1
            suffix = f"-{name_counts[figure.name]}" if name_counts[figure.name] > 1 else ""
            file = path.with_name(f"{path.stem}-{figure.name}{suffix}.svg")
            save(figure.chart, file)
            yield figure.chart.to_dict(validate=False)["title"]["text"], file.name

    return "\n".join(to_markdown(document, write_svgs) for document in documents)


def render_documents(documents: Sequence[Document], extension: str) -> str:
    """Return documents as one text: ``.md``, ``.tex``, ``.csv``, or else as a page."""
    from equipoise.report.renderers.csv import to_csv
    from equipoise.report.renderers.latex import to_latex
    from equipoise.report.renderers.markdown import to_markdown

    match extension:
        case ".md":
            return "\n".join(map(to_markdown, documents))
        case ".tex":
            return "\n".join(map(to_latex, documents))
        case ".csv":
            return to_csv(documents)
    from equipoise.report.renderers import html

    return html.page(documents)


def folder_name(number: int, run_id: str) -> str:
    """Return the name of the folder of a run, without unusual characters of the run's id."""
    return f"{number}-{re.sub(r'[^A-Za-z0-9-]+', '_', run_id)[:MAX_ID_LETTERS]}"


def save_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write figures into a folder, which may be missing; return the files.

    A second figure with the same name gets the suffix ``_2``. Raise `UnusableInput` if the folder
    cannot be created or written to.
    """
    from equipoise.figures.save import save

    _create_folder(folder)
    files: list[Path] = []
    name_counts: Counter[str] = Counter()
    for figure in figures:
        name_counts[figure.name] += 1
        suffix = f"_{name_counts[figure.name]}" if name_counts[figure.name] > 1 else ""
        for extension in FIGURE_EXTENSIONS:
            files.append(folder / f"{figure.name}{suffix}.{extension}")
            save(figure.chart, files[-1])
    return files


def save_flame_graph(svg: bytes, folder: Path) -> None:
    """Write a flame graph as SVG and PNG into a folder, which may be missing.

    Raise `UnusableInput` if the folder cannot be created or written to.
    """
    from equipoise.figures.save import pixels_of

    _create_folder(folder)
    write_file(folder / "flame_graph.svg", svg)
    write_file(folder / "flame_graph.png", pixels_of(svg))


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInput(
            f"cannot create the folder {folder}: {error.strerror}",
            hint="name another folder with --figures",
        ) from None
