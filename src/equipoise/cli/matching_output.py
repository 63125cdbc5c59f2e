"""Where ``match`` and ``balance`` put what they found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.balance_table import balance_document, balance_lines
from equipoise.cli.output_file import check_folder, write_file

if TYPE_CHECKING:
    from equipoise.matching.balance_result import Balance


def check_outputs(plot: Path | None, json_file: str | None) -> None:
    """Check that the files can be written, before the work for them is done.

    Raises
    ------
    UnusableInput
        A folder is missing, or nothing can be drawn here.
    """
    if plot is not None:
        from equipoise.figures.library import require_figures

        check_folder(plot)
        require_figures()
    if json_file is not None and json_file != "-":
        check_folder(Path(json_file))


def put_out(
    schema: str,
    document: Mapping[str, Any],
    lines: Sequence[str],
    balance: Balance,
    plot: Path | None,
    json_file: str | None,
    *,
    quiet: bool,
) -> None:
    """Write the files that were asked for; print the tables unless stdout is the document's."""
    if plot is not None:
        from equipoise.figures.save import save

        save(balance.love_plot(), plot)
    if json_file is not None:
        whole = {"schema": schema, **document, **balance_document(balance)}
        text = json.dumps(whole, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        if json_file == "-":
            click.echo(text, nl=False)
            return
        write_file(Path(json_file), text.encode())
    if quiet:
        return
    for line in [*lines, *balance_lines(balance)]:
        click.echo(line)
