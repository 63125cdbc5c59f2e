"""``equipoise match``: the effect of a treatment by matching, from a table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.command_line import Remembering
from equipoise.cli.matching_options import (
    matching_options,
    read_asked,
    run_match,
    table_options,
)
from equipoise.model.errors import UnusableInput

_NUMBERS = (
    "estimate",
    "se",
    "se_standard",
    "se_conditional",
    "estimate_unadjusted",
    "t",
    "p_value",
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
@click.option("--outcome", metavar="COLUMN", help="What the treatment may have changed.")
@matching_options
@click.option("--bias-adjust", is_flag=True, help="Adjust for what matching left, by regression.")
@click.option(
    "--variance-neighbors",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    show_default=True,
    help="Neighbours for each row's own variance; 0 for one common variance.",
)
@click.option(
    "--variance",
    type=click.Choice(["population", "sample"]),
    default="population",
    show_default=True,
)
@options.report_option
@options.figures_option
@click.option(
    "--plot",
    "plot_file",
    metavar="FILE.html",
    type=click.Path(path_type=Path),
    help="Draw the standardized differences before and after; .svg and .png too.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the result; '-' for stdout.")
def command(**given: Any) -> int:
    """Match treated and controls of FILE (CSV or Parquet) and estimate the effect.

    Without --outcome they are matched only. The balance of the covariates stands below;
    `equipoise balance` tests it.
    """
    from equipoise.cli.matching_conclusions import conclude_match
    from equipoise.cli.matching_output import Found, check_outputs, put_out
    from equipoise.matching.balance import match_balance

    check_outputs(given)
    if given["bias_adjust"] and not given["outcome"]:
        raise UnusableInput("--bias-adjust has no outcome to adjust", hint="give --outcome COLUMN")
    if given["bias_adjust"] and given["by"]:
        raise UnusableInput(
            "--bias-adjust and --by do not go together", hint="leave one of them out"
        )
    asked = read_asked(given)
    adjusted = {"bias_adjust": True} if given["bias_adjust"] else {}
    result = run_match(
        asked,
        given,
        **adjusted,
        variance_neighbors=given["variance_neighbors"],
        variance=given["variance"],
    )
    covariates = asked.covariates
    balance = match_balance(
        dict(zip(covariates.names, covariates.matrix.T, strict=True)),
        covariates.treated,
        result,
        boot=0,
        weights=asked.weights,
        estimand=given["estimand"],
        r_compatible=given["r_compatible"],
    )
    document = {
        "estimand": given["estimand"],
        **{name: _number(getattr(result, name)) for name in _NUMBERS},
        "pairs": [
            {"treated": treated, "control": control, "weight": weight}
            for treated, control, weight in zip(
                result.treated_index.tolist(),
                result.control_index.tolist(),
                result.weights.tolist(),
                strict=True,
            )
        ],
        "dropped": [int(row) for row in result.dropped_index],
    }
    if given["by"]:
        document |= strata_document(result)
    put_out(
        Found(
            "equipoise.match/1",
            document,
            balance,
            balance.love_plot,
            lambda: conclude_match(given, asked, result, balance),
        ),
        given,
    )
    return 0


def strata_document(result: Any) -> dict[str, Any]:
    """The strata and their factors, as JSON has them."""
    return {
        "by": list(result.by),
        "strata": [
            {
                "values": [
                    value if isinstance(value, str | int | float) else str(value)
                    for value in one.values
                ],
                "n": one.n,
                "n_treated": one.n_treated,
                "n_weighted": one.n_weighted,
                "n_dropped": one.n_dropped,
                "estimate": one.estimate,
                "skipped": one.skipped,
            }
            for one in result.strata
        ],
    }


def _number(value: Any) -> float | int | None:
    if value is None or not math.isfinite(value):
        return None
    return (
        int(value) if float(value).is_integer() and not isinstance(value, float) else float(value)
    )
