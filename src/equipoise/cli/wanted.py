"""What the user wants to have of a result, and showing it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.cli.output_file import check_folder, write_file
from equipoise.cli.report_forms import Found, check_report, write_report
from equipoise.cli.reported import reported_document
from equipoise.figures.save import require_figures
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord, RunSummary
from equipoise.model.result import ResultDocument
from equipoise.report import json_document
from equipoise.report.document_file import read_document
from equipoise.report.renderers import terminal


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants to have of a result, and where."""

    ledger: Path
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
    against: ResultDocument | None = None
    """What every row is held against."""
    allowed: tuple[str, ...] | None = None
    """What may differ between the two environments; all that does if ``None``."""
    why: bool = False
    """Whether the largest gap that is called is observed, too."""
    test: bool = True
    """Whether what that suggests is tested."""
    figures: Path | None = None
    """The folder for a study's own figures; by default one for each run beside the ledger."""

    @classmethod
    def from_options(cls, given: dict[str, Any]) -> Wanted:
        """Take them from a command's options."""
        wanted = cls(
            ledger=given["ledger_path"],
            json_file=given["json_file"],
            report_file=given["report_file"],
            show_env=given.get("show_env", False),
            quiet=given["quiet"],
            color=not given["no_color"],
            durable=given.get("durable", False),
            allow_concurrent=given.get("allow_concurrent", False),
            export_json=given.get("export_json"),
            export_csv=given.get("export_csv"),
            export_markdown=given.get("export_markdown"),
            against=_read(given.get("against_file"), show_env=given.get("show_env", False)),
            allowed=given.get("allow"),
            why=given.get("why", False),
            test=not given.get("no_test", False),
            figures=given.get("figures"),
        )
        if wanted.allowed is not None and wanted.against is None and not given.get("other"):
            raise UnusableInput(
                "--allow without another result: nothing is compared across environments",
                hint="leave it out, or name the other one: --against FILE, or `equipoise show A B`",
            )
        # Found out before the campaign, not after an hour of it.
        for path in wanted.files():
            check_folder(path)
        if wanted.report_file is not None:
            check_report(wanted.report_file)
        if wanted.figures is not None:
            require_figures()
        return wanted

    @property
    def has_screen(self) -> bool:
        """Whether anything but the document may go to stdout."""
        return self.json_file != "-" and not self.quiet

    def files(self) -> list[Path]:
        """The files that will be written."""
        json_file = [] if self.json_file in (None, "-") else [Path(str(self.json_file))]
        return self.exports() + json_file

    def exports(self) -> list[Path]:
        """The page and the files in the forms of other tools."""
        named = (self.export_json, self.export_csv, self.export_markdown, self.report_file)
        return [path for path in named if path is not None]


def _read(path: Path | None, *, show_env: bool) -> ResultDocument | None:
    if path is None:
        return None
    return reported_document(read_document(path), show_env=show_env)


def show(
    document: ResultDocument,
    record: RunRecord,
    earlier: list[RunSummary],
    wanted: Wanted,
) -> None:
    """Write the files that were asked for, and the screen unless stdout is taken."""
    write_files(document, record, wanted)
    if wanted.has_screen:
        from equipoise.report.builders.result import CampaignReport, campaign_document

        report = CampaignReport(document, ledger=wanted.ledger, earlier=earlier)
        terminal.print_document(campaign_document(report), color=wanted.color)


def write_files(document: ResultDocument, record: RunRecord, wanted: Wanted) -> None:
    """Write the files that were asked for; the document may go to stdout."""
    if wanted.exports():
        _export(document, record, wanted)
    if wanted.json_file == "-":
        sys.stdout.buffer.write(json_document.encode(document))
    elif wanted.json_file is not None:
        write_file(Path(wanted.json_file), json_document.encode(document))


def _export(document: ResultDocument, record: RunRecord, wanted: Wanted) -> None:
    """Write the page and the files in the forms of other tools."""
    from equipoise.interop.formats import hyperfine

    if wanted.export_json is not None:
        write_file(wanted.export_json, hyperfine.to_json(document))
    if wanted.export_csv is not None:
        write_file(wanted.export_csv, hyperfine.to_csv(document).encode())
    if wanted.export_markdown is not None:
        write_file(wanted.export_markdown, hyperfine.to_markdown(document).encode())
    if wanted.report_file is not None:
        write_report(wanted.report_file, [Found(document, record)])
