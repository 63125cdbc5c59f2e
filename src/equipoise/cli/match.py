"""``equipoise match``: the effect of a treatment by matching, from a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.command_line import Remembering
from equipoise.cli.matching import (
    match_question,
    matched_option,
    matching_options,
    matching_output,
    numbers_of,
    outcome_option,
    output_options,
    pairing_of,
    pairs_document,
    read_match_table,
    run_match,
    table_options,
    variance_neighbors_option,
    write_matched,
    write_matching,
)

if TYPE_CHECKING:
    from equipoise.matching.match import MatchResult

_NUMBERS = (
    "estimate",
    "interval",
    "se",
    "se_standard",
    "se_conditional",
    "estimate_unadjusted",
    "t",
    "p_value",
    "variance_neighbors",
    "n_without_neighbors",
    "n",
    "n_treated",
    "n_weighted",
    "n_dropped",
)


@click.command(
    "match",
    cls=Remembering,
    epilog="Example: equipoise match people.csv --treatment treat --outcome re78 "
    "--covariates age,educ",
)
@table_options
@outcome_option
@matching_options
@click.option("--bias-adjust", is_flag=True, help="Adjust for what matching left, by regression.")
@variance_neighbors_option
@click.option(
    "--variance",
    type=click.Choice(["population", "sample"]),
    default="population",
    show_default=True,
)
@matched_option
@output_options("Draw the standardized differences before and after")
def command(**arguments: Any) -> int:
    """Match treated and controls of FILE (CSV or Parquet) and estimate the effect.

    Without --outcome they are matched only. The balance of the covariates stands below;
    `equipoise balance` tests it.
    """
    from equipoise.tables.results import TableMatch, balance_of

    output = matching_output(arguments)
    table = read_match_table(arguments)
    pairing = pairing_of(arguments)
    among = run_match(
        table,
        pairing,
        arguments,
        bias_adjust=arguments["bias_adjust"],
        variance_neighbors=arguments["variance_neighbors"],
        variance=arguments["variance"],
    )
    balance = balance_of(table, among, pairing, boot=0)
    result = TableMatch(table, among, balance, pairing, match_question(arguments, table))
    write_matched(result, arguments["matched"])
    document = {
        "schema": "equipoise.match/1",
        "estimand": arguments["estimand"],
        **numbers_of(among, _NUMBERS),
        **pairs_document(result),
        **_strata_document(among),
    }
    write_matching(arguments, output, result.document(), balance.love_plot, document, balance)
    return 0


def _strata_document(result: MatchResult) -> dict[str, Any]:
    """Return the strata and their factors as JSON has them; empty without strata."""
    from equipoise.matching.stratified import MatchByResult

    if not isinstance(result, MatchByResult):
        return {}
    strata = [asdict(stratum) for stratum in result.strata]
    for stratum in strata:
        stratum["values"] = [
            value if isinstance(value, str | int | float) else str(value)
            for value in stratum["values"]
        ]
    return {"by": list(result.by), "strata": strata}
