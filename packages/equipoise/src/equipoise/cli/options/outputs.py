"""The options that say where a result goes, and the checks of its files.

The files are checked before a campaign starts, because a campaign may take hours. The extension of
a file selects the format of a report. A reference result is a result of another host or another
time, which ``--against`` names.
"""

from __future__ import annotations

import os
import shlex
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

REPORT_EXTENSIONS = (".html", ".htm", ".md", ".tex", ".csv")
"""Extensions of the file of a report; each selects a format."""


def export_option(format_name: str, *, is_hidden: bool = False) -> Option:
    """Return ``--export-FORMAT``, one of hyperfine's options."""
    return file_option(
        f"--export-{format_name}",
        hidden=is_hidden,
        help=f"Write the times as hyperfine's --export-{format_name} does.",
    )


ledger_option = file_option(
    "--ledger",
    default=default_ledger,
    show_default=f"{DEFAULT_LEDGER}, or ${LEDGER_VARIABLE}",
    help="File with all campaigns.",
)
color_option = flag(
    "--no-color",
    "color",
    flag_value=False,
    default=True,
    callback=lambda _context, _option, value: value and not os.environ.get("NO_COLOR"),
    help="Print without colour; the environment variable NO_COLOR does the same.",
)


def json_option(content: str = "the result document") -> Option:
    """Return ``--json``; ``content`` names the content of the JSON in the help."""
    return click.option(
        "--json",
        "json_file",
        metavar="FILE",
        help=f"Write {content}; '-' writes it to stdout, and nothing else is printed there.",
    )


verbose_option = flag(
    "--verbose", help="Print all details: every row and warning, and how sure each answer is."
)
output_options = option_group(
    json_option(),
    verbose_option,
    flag("--quiet", help="Print neither progress nor the result."),
    color_option,
)
report_option = file_option(
    "--report",
    "report_file",
    help="Write a report: .html is a self-contained page; .md, .tex and .csv are texts.",
)
show_env_option = flag(
    "--show-env",
    help="Show the values of all environment variables, not only of known tuning variables.",
)
figures_option = file_option(
    "--figures", metavar="FOLDER", help="Write each figure to this folder: .html, .svg and .png."
)
durable_option = flag("--durable", help="Store each trial so that it survives a loss of power.")

against_options = option_group(
    file_option(
        "--against",
        "against_file",
        help="Compare every row with this result of --json, from another host or another time.",
    ),
    names_option(
        "--allow",
        "allowed",
        help="Allow only these differences between the two environments.",
    ),
)
no_test_option = flag(
    "--no-test",
    "tests_causes",
    flag_value=False,
    default=True,
    help="With --why: collect evidence, but do not test the causes by interventions.",
)
why_options = option_group(
    flag("--why", help="Explain the largest difference: where the extra time is, and why."),
    no_test_option,
)
concurrent_option = flag(
    "--allow-concurrent",
    envvar="EQUIPOISE_ALLOW_CONCURRENT",
    help="Measure although another campaign runs on this host.",
)

host_option = click.option(
    "--host",
    metavar="NAME",
    show_default=f"${HOST_VARIABLE}, or the name of this machine",
    help="Name of this host in the ledger and in tables.",
)
host_options = option_group(concurrent_option, host_option)
hyperfine_exports = option_group(*map(export_option, ("json", "csv", "markdown")))
campaign_files = option_group(
    ledger_option, durable_option, hyperfine_exports, report_option, show_env_option
)


class HyperfineExports(Struct, frozen=True):
    """Files to write in hyperfine's formats."""

    export_json: Path | None = None
    export_csv: Path | None = None
    export_markdown: Path | None = None
    export_asciidoc: Path | None = None
    export_orgmode: Path | None = None
    time_unit: str | None = None
    """Unit of the times in tables; by default a unit that fits the first mean."""

    def files(self) -> dict[str, Path]:
        """Return the requested files by the name of their format."""
        names = ("json", "csv", "markdown", "asciidoc", "orgmode")
        files: dict[str, Path | None] = {name: getattr(self, f"export_{name}") for name in names}
        return {name: file for name, file in files.items() if file is not None}


class OutputOptions(Struct, frozen=True):
    """Where and how a command writes its result."""

    ledger: Path = DEFAULT_LEDGER
    json_file: str | None = None
    """File for the JSON; ``-`` is stdout."""
    report_file: Path | None = None
    show_env: bool = False
    """Whether reports show the values of all environment variables."""
    quiet: bool = False
    verbose: bool = False
    """Whether the terminal shows the details of the result."""
    color: bool = True
    durable: bool = False
    """Whether each trial survives a loss of power."""
    allow_concurrent: bool = False
    """Whether to measure while another campaign runs on this host."""
    host: str | None = None
    """Name of this host; by default the value of ``EQUIPOISE_HOST``, else the machine's name."""
    exports: HyperfineExports = HyperfineExports()
    against_file: Path | None = None
    reference_result: ResultDocument | None = None
    """Content of ``against_file``; `checked` sets this field."""
    allowed: tuple[str, ...] | None = None
    """Facts that may differ between two environments; ``None`` if all facts may differ."""
    why: bool = False
    """Whether to explain the largest gap."""
    tests_causes: bool = True
    """Whether to test the suggested causes."""
    figures: Path | None = None
    """Folder for the figures of a study; by default a folder next to the ledger."""

    def checked(self, *, source: Path | None = None, has_two_runs: bool = False) -> OutputOptions:
        """Check that every file can be written; return the options with the reference result.

        ``source`` is a file that the command reads, so the report must not replace it.
        ``has_two_runs`` says whether the command compares two runs even without ``--against``.

        Raise `UnusableInput` if a file cannot be written or read.
        """
        if self.allowed is not None and self.against_file is None and not has_two_runs:
            raise UnusableInput(
                "--allow needs a second result whose environment may differ",
                hint="remove --allow, or add --against FILE, or run `equipoise show RUN OTHER`",
            )
        report = self.report_file
        if report is not None and source is not None and report.resolve() == source.resolve():
            raise UnusableInput(
                f"--report {report} would replace the table that is read",
                hint="name another file with --report",
            )
        output = self
        if self.against_file is not None:
            reference = read_for_display(self.against_file, show_env=self.show_env)
            output = replace(self, reference_result=reference)
        for path in self.written_files():
            check_folder(path)
        if report is not None:
            check_report(report)
        if self.figures is not None:
            from equipoise.shared.pictures import require_figures

            require_figures()
        return output

    @property
    def prints_result(self) -> bool:
        """Whether the terminal shows the result."""
        return self.json_file != "-" and not self.quiet

    @property
    def terminal_form(self) -> Form:
        """Form of the document on the terminal, with or without all details."""
        return "verbose" if self.verbose else "brief"

    def written_files(self) -> list[Path]:
        """Return all files that the command will write."""
        json_file = self.json_file
        return self.exported_files() + ([] if json_file in (None, "-") else [Path(str(json_file))])

    def exported_files(self) -> list[Path]:
        """Return the report and the files in other tools' formats."""
        report = [] if self.report_file is None else [self.report_file]
        return [*self.exports.files().values(), *report]

    def numbered(self, number: int) -> OutputOptions:
        """Return the options for one of several results: ``page.md`` becomes ``page-2.md``."""
        report, json_file = self.report_file, self.json_file
        return replace(
            self,
            report_file=report and _with_number(report, number),
            json_file=json_file and str(_with_number(Path(json_file), number)),
        )


def _with_number(file: Path, number: int) -> Path:
    return file.with_stem(f"{file.stem}-{number}")


def read_for_display(file: Path, *, show_env: bool) -> ResultDocument:
    """Read a document that ``--json`` wrote; hide secret values unless ``show_env`` is set.

    Raise `UnusableInput` if the file cannot be read or does not contain a result document.
    """
    from equipoise.analysis.display import document_for_display
    from equipoise.report.json_document import read_document

    return document_for_display(read_document(file), show_env=show_env)


def check_folder(path: Path) -> None:
    """Raise `UnusableInput` if the folder of a file does not exist, or the path is a folder."""
    folder = path.resolve().parent
    if not folder.is_dir():
        create_folder = f"create the folder: mkdir -p {shlex.quote(str(folder))}"
        raise UnusableInput(f"{path}: there is no folder {folder}", hint=create_folder)
    if path.is_dir():
        raise UnusableInput(f"{path} is a folder", hint="name a file in this folder")


def check_report(path: Path) -> None:
    """Raise `UnusableInput` if a report cannot be written to a path.

    The file extension may be unknown, the folder or the library that draws figures may be missing.
    """
    if path.suffix.lower() not in REPORT_EXTENSIONS:
        extension = f"the extension '{path.suffix}'" if path.suffix else "a name without extension"
        raise UnusableInput(
            f"{path}: {extension} does not select a format of reports",
            hint=f"end the file name in {', '.join(REPORT_EXTENSIONS)}",
        )
    check_folder(path)
    if has_figures(path):
        from equipoise.shared.pictures import require_figures

        require_figures()


def has_figures(report: Path) -> bool:
    """Return whether a report in this format has figures."""
    return report.suffix.lower() in (".html", ".htm")
