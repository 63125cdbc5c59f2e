"""Output options, and writing a result to each place that they name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise.cli.load_result import reported_document
from equipoise.cli.output_files import check_folder, write_file
from equipoise.cli.report_files import ReportedCampaign, check_report, write_report
from equipoise.figures.save import require_figures
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord, RunSummary
from equipoise.model.result import ResultDocument
from equipoise.report import json_document
from equipoise.report.json_document import read_document
from equipoise.report.renderers import terminal


class OutputOptions(Struct, frozen=True):
    """Forms in which a command writes its result, and their files."""

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
    def from_options(cls, options: dict[str, Any]) -> OutputOptions:
        """Return the output options of a command."""
        output = cls(
            ledger=options["ledger_path"],
            json_file=options["json_file"],
            report_file=options["report_file"],
            show_env=options.get("show_env", False),
            quiet=options["quiet"],
            color=not options["no_color"],
            durable=options.get("durable", False),
            allow_concurrent=options.get("allow_concurrent", False),
            export_json=options.get("export_json"),
            export_csv=options.get("export_csv"),
            export_markdown=options.get("export_markdown"),
            against=_read(options.get("against_file"), show_env=options.get("show_env", False)),
            allowed=options.get("allow"),
            why=options.get("why", False),
            test=not options.get("no_test", False),
            figures=options.get("figures"),
        )
        if output.allowed is not None and output.against is None and not options.get("other"):
            raise UnusableInput(
                "--allow without another result: nothing is compared across environments",
                hint="leave it out, or name the other one: --against FILE, or `equipoise show A B`",
            )
        # Refused before the campaign, not after an hour of it.
        for path in output.files():
            check_folder(path)
        if output.report_file is not None:
            check_report(output.report_file)
        if output.figures is not None:
            require_figures()
        return output

    @property
    def has_screen(self) -> bool:
        """Whether anything but the document may go to stdout."""
        return self.json_file != "-" and not self.quiet

    def files(self) -> list[Path]:
        """Return the files that will be written."""
        json_file = [] if self.json_file in (None, "-") else [Path(str(self.json_file))]
        return self.exports() + json_file

    def exports(self) -> list[Path]:
        """Return the report and the files in other tools' formats."""
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
    output: OutputOptions,
) -> None:
    """Write the files that were asked for, and the screen unless stdout is taken."""
    write_files(document, record, output)
    if output.has_screen:
        from equipoise.report.builders.result import CampaignReport, campaign_document

        report = CampaignReport(document, ledger=output.ledger, earlier=earlier)
        terminal.print_document(campaign_document(report), color=output.color)


def write_files(document: ResultDocument, record: RunRecord, output: OutputOptions) -> None:
    """Write the files that were asked for; the document may go to stdout."""
    if output.exports():
        _export(document, record, output)
    if output.json_file == "-":
        sys.stdout.buffer.write(json_document.encode(document))
    elif output.json_file is not None:
        write_file(Path(output.json_file), json_document.encode(document))


def _export(document: ResultDocument, record: RunRecord, output: OutputOptions) -> None:
    """Write the report and the files in other tools' formats."""
    from equipoise.interop.formats import hyperfine

    if output.export_json is not None:
        write_file(output.export_json, hyperfine.to_json(document))
    if output.export_csv is not None:
        write_file(output.export_csv, hyperfine.to_csv(document).encode())
    if output.export_markdown is not None:
        write_file(output.export_markdown, hyperfine.to_markdown(document).encode())
    if output.report_file is not None:
        write_report(output.report_file, [ReportedCampaign(document, record)])
