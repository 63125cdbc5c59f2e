"""The forms in which ``match``, ``balance`` and ``genmatch`` show their results.

A JSON document, the chart of ``--plot``, and the document for the terminal, ``--report`` and
``--figures``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from equipoise.cli import options
from equipoise.cli.command_line import command_line
from equipoise.cli.matching_options import options_of
from equipoise.cli.output_files import check_folder, write_file
from equipoise.cli.report_files import check_report_files, write_report_files

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise.cli.matching_options import MatchTable
    from equipoise.matching.balance import Balance, SmallestP
    from equipoise.matching.match import MatchResult
    from equipoise.report.builders.matching import Difference, MatchQuestion
    from equipoise.report.document import Document

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def output_options(plot_help: str) -> Callable[[Decorated], Decorated]:
    """Return the options that name the files to write."""
    return options_of(
        options.report_option,
        options.figures_option,
        click.option(
            "--plot",
            "plot_file",
            metavar="FILE.html",
            type=click.Path(path_type=Path),
            help=f"{plot_help}; .svg and .png too.",
        ),
        click.option(
            "--json", "json_file", metavar="FILE", help="Write the result; '-' for stdout."
        ),
    )


def check_outputs(arguments: Mapping[str, Any]) -> None:
    """Check that the files can be written, before the work for them is done."""
    if arguments["plot_file"] is not None:
        from equipoise.figures.save import require_figures

        check_folder(arguments["plot_file"])
        require_figures()
    if arguments["json_file"] not in (None, "-"):
        check_folder(Path(arguments["json_file"]))
    check_report_files(arguments["file"], arguments["report_file"], arguments["figures"])


def write_output(
    arguments: Mapping[str, Any],
    *,
    schema: str,
    document: Mapping[str, Any],
    balance: Balance,
    plot: Callable[[], LayerChart],
    report: Document,
) -> None:
    """Write the requested files; print the tables unless stdout is the document's.

    Parameters
    ----------
    schema, document
        The JSON document without its balance.
    plot
        Function that draws the chart of ``--plot``.
    report
        Document for the terminal, ``--report`` and ``--figures``.
    """
    if arguments["plot_file"] is not None:
        from equipoise.figures.save import save

        save(plot(), arguments["plot_file"])
    write_report_files(report, arguments["report_file"], arguments["figures"])
    if arguments["json_file"] is not None:
        whole = {"schema": schema, **document, **_balance_document(balance)}
        text = json.dumps(whole, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        if arguments["json_file"] == "-":
            click.echo(text, nl=False)
            return
        write_file(Path(arguments["json_file"]), text.encode())
    if not arguments["quiet"]:
        from equipoise.report.renderers.terminal import print_document

        print_document(report, color=not arguments["no_color"])


def numbers_of(result: MatchResult, names: Sequence[str]) -> dict[str, float | None]:
    """Return fields of a match as JSON has them: what is unknown or infinite is null."""
    return {name: _json(getattr(result, name)) for name in names}


def pairs_document(result: MatchResult) -> dict[str, Any]:
    """Return the pairs and the dropped rows of a match as JSON has them."""
    pairs = zip(
        result.treated_index.tolist(),
        result.control_index.tolist(),
        result.weights.tolist(),
        strict=True,
    )
    return {
        "pairs": [
            {"treated": treated, "control": control, "weight": weight}
            for treated, control, weight in pairs
        ],
        "dropped": result.dropped_index.tolist(),
    }


def _balance_document(balance: Balance) -> dict[str, Any]:
    def smallest(smallest: SmallestP) -> dict[str, Any]:
        where = [{"variable": name, "test": test} for name, test in smallest.where]
        return {"value": _json(smallest.value), "where": where}

    after = balance.smallest_after
    return {
        "balance": [{name: _json(value) for name, value in row.items()} for row in balance.rows()],
        "smallest_p_before": smallest(balance.smallest_before),
        "smallest_p_after": None if after is None else smallest(after),
    }


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def match_question(
    arguments: Mapping[str, Any], table: MatchTable, seed: int | None = None
) -> MatchQuestion:
    """Return what the command asks of the table, and the command that repeats it."""
    from equipoise.report.builders.matching import MatchQuestion, method_sentences

    treatment = arguments["treatment"] or arguments["formula"].partition("~")[0].strip()
    return MatchQuestion(
        source=str(arguments["file"]),
        treatment=treatment,
        outcome=arguments.get("outcome"),
        method=tuple(method_sentences(arguments, table.covariates.names)),
        command=command_line(seed),
    )


def difference_before(table: MatchTable) -> Difference | None:
    """Return the difference of the outcome before matching; ``None`` without an outcome."""
    if table.outcome is None:
        return None
    from equipoise.report.builders.matching import naive_difference

    return naive_difference(table.outcome, table.covariates.treated, table.weights)
