"""Where ``match``, ``genmatch`` and ``balance`` put what they found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.balance_table import balance_document
from equipoise.cli.conclusion_forms import check_report_files, write_report_files
from equipoise.cli.output_file import check_folder, write_file

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise.matching.balance import Balance
    from equipoise.report.document import Document


@dataclass(frozen=True, slots=True)
class Found:
    """What a command found, in each form that may be asked for."""

    schema: str
    document: Mapping[str, Any]
    balance: Balance
    plot: Callable[[], LayerChart]
    report: Callable[[], Document]


def check_outputs(given: Mapping[str, Any]) -> None:
    """Check that the files can be written, before the work for them is done.

    Raises
    ------
    UnusableInput
        A folder is missing, an ending is of no form, or nothing can be drawn here.
    """
    if given["plot_file"] is not None:
        from equipoise.figures.save import require_figures

        check_folder(given["plot_file"])
        require_figures()
    if given["json_file"] not in (None, "-"):
        check_folder(Path(given["json_file"]))
    check_report_files(given["file"], given["report_file"], given["figures"])


def put_out(found: Found, given: Mapping[str, Any]) -> None:
    """Write the files that were asked for; print the tables unless stdout is the document's."""
    if given["plot_file"] is not None:
        from equipoise.figures.save import save

        save(found.plot(), given["plot_file"])
    report = found.report()
    write_report_files(report, given["report_file"], given["figures"])
    if given["json_file"] is not None:
        whole = {"schema": found.schema, **found.document, **balance_document(found.balance)}
        text = json.dumps(whole, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        if given["json_file"] == "-":
            click.echo(text, nl=False)
            return
        write_file(Path(given["json_file"]), text.encode())
    if not given["quiet"]:
        from equipoise.report.renderers.terminal import print_document

        print_document(report, color=not given.get("no_color", False))
