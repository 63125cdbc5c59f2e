"""Output options, and writing a document to each place that they name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from equipoise.analysis.redaction.documents import document_without_hidden_values
from equipoise.cli.output_files import (
    check_folder,
    check_report,
    save_figures,
    write_documents,
    write_json,
)
from equipoise.figures.save import require_figures
from equipoise.ledger.opening import DEFAULT_LEDGER
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import read_document

if TYPE_CHECKING:
    from equipoise.report.document import Document


class OutputOptions(Struct, frozen=True):
    """Forms in which a command writes its result, and their files."""

    ledger: Path = Path(DEFAULT_LEDGER)
    json_file: str | None = None
    report_file: Path | None = None
    show_env: bool = False
    """Whether the values of all environment variables are shown."""
    quiet: bool = False
    color: bool = True
    durable: bool = False
    allow_concurrent: bool = False
    export_json: Path | None = None
    export_csv: Path | None = None
    export_markdown: Path | None = None
    export_asciidoc: Path | None = None
    export_orgmode: Path | None = None
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
        settings = {name: arguments[name] for name in cls.__struct_fields__ if name in arguments}
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

    def files(self) -> list[Path]:
        """Return the files that will be written."""
        json_file = self.json_file
        return self.exports() + ([] if json_file in (None, "-") else [Path(str(json_file))])

    def exports(self) -> list[Path]:
        """Return the report and the files in other tools' formats."""
        tables = (self.export_markdown, self.export_asciidoc, self.export_orgmode)
        named = (self.export_json, self.export_csv, *tables, self.report_file)
        return [path for path in named if path is not None]


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
    from msgspec.structs import replace

    from equipoise.measure.environment import snapshot
    from equipoise.report.builders.origin import machine_of, minute_of

    if document.origin is None:
        return document
    now = minute_of(datetime.now(UTC).isoformat())
    origin = replace(document.origin, when=f"computed {now}", machine=machine_of(snapshot()))
    return replace(document, origin=origin)
