"""The options that say where a result goes, and the checks of its files.

Files are checked before the work, not after an hour of it. The ending of a report's name decides
its form.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cli.options.declaration import Option, file_option, flag, names_option, option_group
from equipoise.files.state import DEFAULT_LEDGER, HOST_VARIABLE, LEDGER_VARIABLE, default_ledger
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument

if TYPE_CHECKING:
    from equipoise.report.document import Form

REPORT_FORMS = (".html", ".htm", ".md", ".tex", ".csv")
"""Endings of a report's name."""


def export_option(form: str, *, hidden: bool = False) -> Option:
    """Return ``--export-FORM``, one of hyperfine's options."""
    return file_option(
        f"--export-{form}",
        hidden=hidden,
        help=f"Write the times as hyperfine's --export-{form} does.",
    )


ledger_option = file_option(
    "--ledger",
    default=default_ledger,
    show_default=f"{DEFAULT_LEDGER}, or ${LEDGER_VARIABLE}",
    help="Where campaigns are kept.",
)
color_option = flag(
    "--no-color",
    "color",
    flag_value=False,
    default=True,
    callback=lambda _context, _option, value: value and not os.environ.get("NO_COLOR"),
    help="Print without colour; so does NO_COLOR in the environment.",
)


def json_option(what: str = "the result document") -> Option:
    """Return ``--json``, which writes what a command has to tell."""
    return click.option(
        "--json",
        "json_file",
        metavar="FILE",
        help=f"Write {what}; '-' for stdout, and then nothing else is there.",
    )


verbose_option = flag(
    "--verbose", help="Print the details too: every row and warning, and how sure each answer is."
)
output_options = option_group(
    json_option(),
    verbose_option,
    flag("--quiet", help="Print no progress and no screen."),
    color_option,
)
report_option = file_option(
    "--report",
    "report_file",
    help="Write a report: .html is one page that can be sent; .md, .tex or .csv.",
)
show_env_option = flag(
    "--show-env",
    help="Show the values of all environment variables: they are hidden but for tuning variables.",
)
figures_option = file_option(
    "--figures", metavar="FOLDER", help="Write each figure there, as .html, .svg and .png."
)
durable_option = flag("--durable", help="Let each trial survive a loss of power, too.")

against_option = option_group(
    file_option(
        "--against",
        "against_file",
        help="Hold every row against this --json of another host, or of this one earlier.",
    ),
    names_option(
        "--allow",
        "allowed",
        help="What alone may differ between the two environments: anything else is refused.",
    ),
)
no_test_option = flag(
    "--no-test",
    "test",
    flag_value=False,
    default=True,
    help="Of why, gather evidence only: change nothing to test it.",
)
why_option = option_group(
    flag("--why", help="Observe the largest gap that is called: where the extra time is, and why."),
    no_test_option,
)
concurrent_option = flag(
    "--allow-concurrent",
    envvar="EQUIPOISE_ALLOW_CONCURRENT",
    help="Measure though another campaign runs on this host.",
)

host_option = click.option(
    "--host",
    metavar="NAME",
    show_default=f"${HOST_VARIABLE}, or the name of this machine",
    help="Name of this host in the ledger and in tables of several hosts.",
)
host_options = option_group(concurrent_option, host_option)
hyperfine_exports = option_group(*map(export_option, ("json", "csv", "markdown")))
campaign_files = option_group(
    ledger_option, durable_option, hyperfine_exports, report_option, show_env_option
)
"""The options on what a campaign leaves in files."""


class HyperfineExports(Struct, frozen=True):
    """Files in hyperfine's formats."""

    export_json: Path | None = None
    export_csv: Path | None = None
    export_markdown: Path | None = None
    export_asciidoc: Path | None = None
    export_orgmode: Path | None = None
    time_unit: str | None = None
    """Unit of the tables among these; by default one that fits the first mean."""

    def files(self) -> dict[str, Path]:
        """Return the file in each requested format."""
        forms = ("json", "csv", "markdown", "asciidoc", "orgmode")
        named: dict[str, Path | None] = {form: getattr(self, f"export_{form}") for form in forms}
        return {form: file for form, file in named.items() if file is not None}


class OutputOptions(Struct, frozen=True):
    """Forms in which a command writes its result, and their files."""

    ledger: Path = DEFAULT_LEDGER
    json_file: str | None = None
    report_file: Path | None = None
    show_env: bool = False
    """Whether the values of all environment variables are shown."""
    quiet: bool = False
    verbose: bool = False
    """Whether the screen has more than the answer and its evidence."""
    color: bool = True
    durable: bool = False
    allow_concurrent: bool = False
    host: str | None = None
    """Name of this host; by default what ``EQUIPOISE_HOST`` says, else that of the machine."""
    exports: HyperfineExports = HyperfineExports()
    against_file: Path | None = None
    against: ResultDocument | None = None
    """Reference result that every row is compared with, once `checked` has read its file."""
    allowed: tuple[str, ...] | None = None
    """Facts that may differ between the two environments; ``None`` allows all."""
    why: bool = False
    """Whether to explain the largest gap."""
    test: bool = True
    """Whether to test the suggested causes."""
    figures: Path | None = None
    """Folder for a study's own figures; by default one for each run next to the ledger."""

    def checked(self, *, source: Path | None = None, holds_two: bool = False) -> OutputOptions:
        """Return the options with the reference result, once every file can be written.

        Raise `UnusableInput` if a file cannot be written or read.

        Parameters
        ----------
        source
            File that the command reads, which no report may replace.
        holds_two
            Whether the command compares two results without ``--against``.
        """
        if self.allowed is not None and self.against_file is None and not holds_two:
            raise UnusableInput(
                "--allow without another result: nothing is compared across environments",
                hint="leave it out, or name the other one: --against FILE, or `equipoise show A B`",
            )
        report = self.report_file
        if report is not None and source is not None and report.resolve() == source.resolve():
            raise UnusableInput(
                f"--report {report} is the table itself", hint="name another file for the report"
            )
        output = self
        if self.against_file is not None:
            reference = read_reported(self.against_file, show_env=self.show_env)
            output = replace(self, against=reference)
        for path in self.written_files():
            check_folder(path)
        if report is not None:
            check_report(report)
        if self.figures is not None:
            from equipoise.shared.pictures import require_figures

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

    def written_files(self) -> list[Path]:
        """Return the files that will be written."""
        json_file = self.json_file
        return self.exported_files() + ([] if json_file in (None, "-") else [Path(str(json_file))])

    def exported_files(self) -> list[Path]:
        """Return the report and the files in other tools' formats."""
        report = [] if self.report_file is None else [self.report_file]
        return [*self.exports.files().values(), *report]

    def numbered(self, number: int) -> OutputOptions:
        """Return the outputs of one of several results: ``page.md`` becomes ``page-2.md``."""
        report, json_file = self.report_file, self.json_file
        return replace(
            self,
            report_file=report and _with_number(report, number),
            json_file=json_file and str(_with_number(Path(json_file), number)),
        )


def _with_number(file: Path, number: int) -> Path:
    return file.with_stem(f"{file.stem}-{number}")


def read_reported(file: Path, *, show_env: bool) -> ResultDocument:
    """Read a document that ``--json`` wrote, as it is reported.

    Raise `UnusableInput` if the file cannot be read, or holds no such document.
    """
    from equipoise.analysis.display import document_for_display
    from equipoise.report.json_document import read_document

    return document_for_display(read_document(file), show_env=show_env)


def check_folder(path: Path) -> None:
    """Check that a file can be written at a path, before the work for it is done.

    Raise `UnusableInput` if there is no such folder, or the path is one itself.
    """
    if not path.resolve().parent.is_dir():
        raise UnusableInput(
            f"{path}: there is no folder {path.resolve().parent}", hint="make it first"
        )
    if path.is_dir():
        raise UnusableInput(f"{path} is a folder", hint="name a file in it")


def check_report(path: Path) -> None:
    """Check that a report can be written at a path, before the work for it is done.

    Raise `UnusableInput` if the ending is of no form, the folder is missing, or nothing can be
    drawn here.
    """
    if path.suffix.lower() not in REPORT_FORMS:
        raise UnusableInput(
            f"{path}: no report is written as '{path.suffix}'",
            hint=f"end the name in {', '.join(REPORT_FORMS)}",
        )
    check_folder(path)
    if has_figures(path):
        from equipoise.shared.pictures import require_figures

        require_figures()


def has_figures(report: Path) -> bool:
    """Return whether a report in this file has figures."""
    return report.suffix.lower() in (".html", ".htm")
