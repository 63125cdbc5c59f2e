"""Output options, and the files that a command writes.

Files are checked before the work, and replaced as a whole. The ending of a report's name decides
its form.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.redaction import document_without_hidden_values
from equipoise.analysis.sequences import sequences_of, sequences_of_document
from equipoise.cli.options import EXPORT_FORMS, fields_of
from equipoise.cli.streams import say
from equipoise.design.command_line import command_of_plan
from equipoise.files.writing import write_or_refuse
from equipoise.ledger.opening import DEFAULT_LEDGER
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import read_document
from equipoise.shared.pictures import require_figures

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise.report.builders.result import CampaignReport
    from equipoise.report.document import Document, Figures, Form

FORMS = (".html", ".htm", ".md", ".tex", ".csv")
"""Endings of a report's name."""
FIGURE_FORMS = ("html", "svg", "png")
MOST_LETTERS = 80
"""Number of letters of a run's id in the name of its folder."""
Reported = tuple[ResultDocument, RunRecord | None]
"""A result and its campaign, as they are reported; ``None`` where only the document is left."""


class OutputOptions(Struct, frozen=True):
    """Forms in which a command writes its result, and their files."""

    ledger: Path = Path(DEFAULT_LEDGER)
    json_file: str | None = None
    report_file: Path | None = None
    show_env: bool = False
    """Whether the values of all environment variables are shown."""
    quiet: bool = False
    verbose: bool = False
    """Whether the screen has more than the answer and the most important warning."""
    color: bool = True
    durable: bool = False
    allow_concurrent: bool = False
    host: str | None = None
    """Name of this host; by default what ``EQUIPOISE_HOST`` says, else that of the machine."""
    hyperfine_exports: dict[str, Path] = {}
    """File in each of hyperfine's formats."""
    time_unit: str | None = None
    """Unit of the tables among these; by default one that fits the first mean."""
    against: ResultDocument | None = None
    """Reference result that every row is compared with."""
    allowed: tuple[str, ...] | None = None
    """Facts that may differ between the two environments; ``None`` allows all."""
    why: bool = False
    """Whether to explain the largest gap."""
    test: bool = True
    """Whether to test the suggested causes."""
    figures: Path | None = None
    """Folder for a study's own figures; by default one for each run beside the ledger."""

    @classmethod
    def from_options(
        cls, arguments: dict[str, Any], *, source: Path | None = None
    ) -> OutputOptions:
        """Return the output options of a command.

        Parameters
        ----------
        source
            File that the command reads, which no report may replace.

        Raises
        ------
        UnusableInput
            A file cannot be written or read: refused before the work, not after an hour of it.
        """
        settings = fields_of(cls, arguments)
        named = {form: arguments.get(f"export_{form}") for form in EXPORT_FORMS}
        settings["hyperfine_exports"] = {form: file for form, file in named.items() if file}
        if settings.get("against") is not None:
            settings["against"] = read_reported(settings["against"], show_env=settings["show_env"])
        output = cls(**settings)
        if output.allowed is not None and output.against is None and not arguments.get("other"):
            raise UnusableInput(
                "--allow without another result: nothing is compared across environments",
                hint="leave it out, or name the other one: --against FILE, or `equipoise show A B`",
            )
        report = output.report_file
        if report is not None and source is not None and report.resolve() == source.resolve():
            raise UnusableInput(
                f"--report {report} is the table itself", hint="name another file for the report"
            )
        for path in output.files():
            check_folder(path)
        if report is not None:
            check_report(report)
        if output.figures is not None:
            require_figures()
        return output

    @property
    def has_screen(self) -> bool:
        """Whether anything but the document may go to stdout."""
        return self.json_file != "-" and not self.quiet

    @property
    def screen_form(self) -> Form:
        """Form in which a terminal shows the result."""
        return "verbose" if self.verbose else "screen"

    def files(self) -> list[Path]:
        """Return the files that will be written."""
        json_file = self.json_file
        return self.exports() + ([] if json_file in (None, "-") else [Path(str(json_file))])

    def exports(self) -> list[Path]:
        """Return the report and the files in other tools' formats."""
        report = [] if self.report_file is None else [self.report_file]
        return [*self.hyperfine_exports.values(), *report]


def read_reported(file: Path, *, show_env: bool) -> ResultDocument:
    """Read a document that ``--json`` wrote, as it is reported.

    Raises
    ------
    UnusableInput
        The file cannot be read, or holds no such document.
    """
    document = read_document(file)
    return document if show_env else document_without_hidden_values(document)


def write_output(document: Document, to_json: Callable[[], bytes], output: OutputOptions) -> None:
    """Write a document that is no campaign's to each place; print it unless stdout is taken.

    Raises
    ------
    UnusableInput
        A file cannot be written.
    """
    if output.report_file is not None:
        write_documents(output.report_file, [_with_this_moment(document)])
    if output.figures is not None:
        from equipoise.report.document import figures_of

        save_figures(figures_of(document), output.figures)
    write_json(output.json_file, to_json)
    if output.has_screen:
        from equipoise.report.renderers.terminal import print_document

        print_document(document, color=output.color)


def _with_this_moment(document: Document) -> Document:
    """Return a document that is computed now, with the time and the machine."""
    from equipoise.measure.environment import snapshot
    from equipoise.report.builders.origin import machine_of, minute_of

    if document.origin is None:
        return document
    now = minute_of(datetime.now(UTC).isoformat())
    origin = replace(document.origin, when=f"computed {now}", machine=machine_of(snapshot()))
    return replace(document, origin=origin)


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
    hint = "nothing is lost: the campaign is in the ledger; name another file"
    write_or_refuse(path, content, hint)


def numbered(output: OutputOptions, number: int) -> OutputOptions:
    """Return the outputs of one of several results: ``page.md`` becomes ``page-2.md``."""
    report, json_file = output.report_file, output.json_file
    return replace(
        output,
        report_file=report and _with_number(report, number),
        json_file=json_file and str(_with_number(Path(json_file), number)),
    )


def _with_number(file: Path, number: int) -> Path:
    return file.with_stem(f"{file.stem}-{number}")


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
    form = path.suffix.lower()
    text = with_pictures(documents, path) if form == ".md" else rendered(documents, form)
    write_file(path, text.encode("utf-8", "backslashreplace"))


def with_pictures(documents: Sequence[Document], path: Path) -> str:
    """Return documents as Markdown for a file, and write the figures in it beside the file.

    Figures are left out, and a message says so, where altair or vl-convert is not installed.

    Raises
    ------
    UnusableInput
        A figure cannot be written.
    """
    from equipoise.report.renderers.markdown import to_markdown

    names: Counter[str] = Counter()

    def write(figures: Figures) -> Iterator[tuple[str, str]]:
        try:
            require_figures()
        except UnusableInput as missing:
            # Not worth losing a result for.
            say(f"{path} has no figure: {missing.what}", missing.hint)
            return
        from equipoise.figures.save import save

        for figure in figures.figures():
            names[figure.name] += 1
            suffix = f"-{names[figure.name]}" if names[figure.name] > 1 else ""
            file = path.with_name(f"{path.stem}-{figure.name}{suffix}.svg")
            save(figure.chart, file)
            yield figure.chart.to_dict(validate=False)["title"]["text"], file.name

    return "\n".join(to_markdown(document, write) for document in documents)


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
