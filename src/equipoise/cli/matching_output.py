"""The forms in which ``match``, ``balance`` and ``genmatch`` show their results.

The tables of the terminal, the JSON document, the chart of ``--plot``, and the conclusion that
``--report`` and ``--figures`` write, with the sentences on the method.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from equipoise.cli import options
from equipoise.cli.command_line import command_line
from equipoise.cli.conclusion_forms import Told, check_conclusion, write_conclusion
from equipoise.cli.output_file import check_folder, write_file
from equipoise.model.safe_text import visible

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise.cli.matching_options import MatchTable
    from equipoise.matching.balance import Balance, SmallestP
    from equipoise.matching.conclusion import Question
    from equipoise.matching.effect_words import Difference
    from equipoise.matching.gen_match import GenMatchResult
    from equipoise.matching.match import MatchResult

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_QUERIES = {"ATT": "treated unit", "ATC": "control", "ATE": "unit"}
_METRICS = {
    "inverse_variance": "each scaled by its standard deviation",
    "mahalanobis": "by their Mahalanobis distance",
}
_MOST_NAMED = 12
"""Covariates that the sentence on the method names at most."""


def output_options(plot_help: str) -> Callable[[Decorated], Decorated]:
    """Add the options that name the files to write."""

    def decorate(function: Decorated) -> Decorated:
        for option in (
            click.option("--json", "json_file", metavar="FILE", help="Write JSON; '-' for stdout."),
            click.option(
                "--plot",
                "plot_file",
                metavar="FILE.html",
                type=click.Path(path_type=Path),
                help=f"{plot_help}; .svg and .png too.",
            ),
            options.figures_option,
            options.report_option,
        ):
            function = option(function)
        return function

    return decorate


@dataclass(frozen=True, slots=True)
class MatchingOutput:
    """The result of a command, in each form that the options may request.

    Parameters
    ----------
    schema, document
        The JSON document without its balance.
    lines
        Lines that are printed above the balance.
    balance
        Balance of the covariates.
    plot
        Function that draws the chart of ``--plot``.
    conclude
        Function that builds the conclusion of ``--report`` and ``--figures``.
    """

    schema: str
    document: Mapping[str, Any]
    lines: Sequence[str]
    balance: Balance
    plot: Callable[[], LayerChart]
    conclude: Callable[[], Told]


def check_outputs(arguments: Mapping[str, Any]) -> None:
    """Check that the files can be written, before the work for them is done.

    Raises
    ------
    UnusableInput
        A folder is missing, an ending is of no form, or nothing can be drawn here.
    """
    if arguments["plot_file"] is not None:
        from equipoise.figures.save import require_figures

        check_folder(arguments["plot_file"])
        require_figures()
    if arguments["json_file"] not in (None, "-"):
        check_folder(Path(arguments["json_file"]))
    check_conclusion(arguments["file"], arguments["report_file"], arguments["figures"])


def write_output(output: MatchingOutput, arguments: Mapping[str, Any]) -> None:
    """Write the requested files; print the tables unless stdout is the document's."""
    if arguments["plot_file"] is not None:
        from equipoise.figures.save import save

        save(output.plot(), arguments["plot_file"])
    write_conclusion(output.conclude, arguments["report_file"], arguments["figures"])
    if arguments["json_file"] is not None:
        whole = {"schema": output.schema, **output.document, **_balance_document(output.balance)}
        text = json.dumps(whole, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        if arguments["json_file"] == "-":
            click.echo(text, nl=False)
            return
        write_file(Path(arguments["json_file"]), text.encode())
    if arguments["quiet"]:
        return
    for line in [*output.lines, *_balance_lines(output.balance)]:
        click.echo(line)


def summary_lines(summary: str) -> list[str]:
    """Return the lines of a summary that is printed above a table."""
    return [*(visible(line) for line in summary.splitlines()), ""]


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


def _balance_lines(balance: Balance) -> list[str]:
    """Return the table, two lines for each variable, and the smallest p-values."""
    from equipoise.matching.balance_table import HEADINGS, cells, smallest_words

    rows = [HEADINGS, *(tuple(map(visible, row)) for row in cells(balance))]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [*lines, "", *map(visible, smallest_words(balance))]


def conclude_match(
    arguments: Mapping[str, Any], table: MatchTable, result: MatchResult, balance: Balance
) -> Told:
    """Build the conclusion of a match with its effect."""
    from equipoise.matching.conclusion import match_conclusion
    from equipoise.matching.effect_words import matched_difference
    from equipoise.matching.pictures import balance_figures, effect_figures

    question, naive = _question(arguments, table, None), _naive_difference(table)
    effect = matched_difference(result)
    return Told(
        match_conclusion(result, balance, naive, question),
        lambda: (*effect_figures(effect, naive, question), *balance_figures(balance)),
    )


def conclude_balance(
    arguments: Mapping[str, Any],
    table: MatchTable,
    result: MatchResult | None,
    balance: Balance,
) -> Told:
    """Build the conclusion of the balance of covariates."""
    from equipoise.matching.conclusion import balance_conclusion
    from equipoise.matching.pictures import balance_figures

    question = _question(arguments, table, None)
    return Told(balance_conclusion(balance, result, question), lambda: balance_figures(balance))


def conclude_search(
    arguments: Mapping[str, Any],
    table: MatchTable,
    search: GenMatchResult,
    effect: MatchResult | None,
    balance: Balance,
) -> Told:
    """Build the conclusion of a search for weights, with the effect by them."""
    from equipoise.matching.conclusion import search_conclusion
    from equipoise.matching.effect_words import matched_difference
    from equipoise.matching.pictures import balance_figures, effect_figures, search_figures

    question, naive = _question(arguments, table, search.seed), _naive_difference(table)
    difference = None if effect is None else matched_difference(effect)
    return Told(
        search_conclusion(search, effect, balance, naive, question),
        lambda: (
            *effect_figures(difference, naive, question),
            *search_figures(search),
            *balance_figures(balance),
        ),
    )


def _question(arguments: Mapping[str, Any], table: MatchTable, seed: int | None) -> Question:
    from equipoise.matching.conclusion import Question

    treatment = arguments["treatment"] or arguments["formula"].partition("~")[0].strip()
    return Question(
        source=str(arguments["file"]),
        treatment=treatment,
        outcome=arguments.get("outcome"),
        method=tuple(method_sentences(arguments, table.covariates.names)),
        again=command_line(seed),
    )


def _naive_difference(table: MatchTable) -> Difference | None:
    if table.outcome is None:
        return None
    from equipoise.matching.effect_words import naive_difference

    return naive_difference(table.outcome, table.covariates.treated, table.weights)


def method_sentences(arguments: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Say how units were matched on the covariates of these names."""
    if arguments.get("unmatched"):
        yield "Nothing was matched: all rows are compared as they are."
        return
    count = arguments["m"]
    nearest = "its nearest" if count == 1 else f"its {count} nearest"
    yield (
        f"Each {_QUERIES[arguments['estimand']]} is matched with {nearest} of the other arm in "
        f"{_covariate_names(names)}, {_distance(arguments)}. The search is exact"
        f"{_ties(arguments)}."
    )
    limits = list(_limits(arguments))
    if limits:
        yield f"Pairs are limited: {'; '.join(limits)}."
    if "population" in arguments:
        yield (
            "The weights of the covariates are those that a genetic search found with "
            f"{arguments['population']:,} candidates a generation, judged by "
            f"{arguments['fitness']} (Diamond and Sekhon 2013)."
        )
    if arguments["weights"]:
        yield f"Rows count as {arguments['weights']} says."
    if arguments.get("bias_adjust"):
        yield (
            "A regression within each arm takes out the imbalance that matching left (Abadie and "
            "Imbens 2011)."
        )
    if arguments["r_compatible"]:
        yield "The quirks of R's package Matching are reproduced (docs/matching.md)."


def _covariate_names(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{len(names)} covariates ({', '.join(names[:_MOST_NAMED])}, …)"
    return ", ".join(names)


def _distance(arguments: Mapping[str, Any]) -> str:
    if "population" in arguments:
        return "weighted by what the search found"
    if arguments["propensity"]:
        return "all of them through a propensity score (a logistic regression)"
    return _METRICS[arguments["metric"]]


def _ties(arguments: Mapping[str, Any]) -> str:
    if arguments["no_replace"]:
        return ", each match is used once, in the order of the rows"
    if arguments["no_ties"]:
        return ", with replacement, ties are broken by lot"
    return ", with replacement and all ties"


def _limits(arguments: Mapping[str, Any]) -> Iterator[str]:
    if arguments["exact"]:
        yield f"equal in {', '.join(arguments['exact'])}"
    if arguments["caliper"]:
        widths = ", ".join(f"{width:g}" for width in arguments["caliper"])
        yield f"within {widths} standard deviations in each covariate"
    if arguments.get("by"):
        yield f"only among rows that agree in {', '.join(arguments['by'])}"
    if arguments["common_support"]:
        yield "rows outside the overlap of both groups are left out"
