"""``equipoise balance``: how alike treated and controls are, before and after matching."""

from __future__ import annotations

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
from equipoise.cli.work_bar import work_bar


@click.command(
    "balance",
    cls=Remembering,
    epilog="Example: equipoise balance people.csv --treatment treat --covariates age,educ",
)
@table_options
@click.option("--unmatched", is_flag=True, help="Match nothing: only the balance before.")
@matching_options
@click.option(
    "--boot",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    metavar="N",
    help="Bootstrap samples of the KS tests; 0 for none.",
)
@click.option("--no-ks", is_flag=True, help="Test no distribution, only means.")
@options.report_option
@options.figures_option
@click.option(
    "--plot",
    "plot_file",
    metavar="FILE.html",
    type=click.Path(path_type=Path),
    help="Draw the standardized differences; .svg and .png too.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the numbers; '-' for stdout.")
def command(**given: Any) -> int:
    """Compare treated and controls of FILE (CSV or Parquet) in every covariate.

    They are matched as `equipoise match` would with the same options.
    """
    from equipoise.cli.matching_conclusions import conclude_balance
    from equipoise.cli.matching_output import Found, check_outputs, put_out
    from equipoise.matching.balance import match_balance

    check_outputs(given)
    asked = read_asked(given)
    matched = None if given["unmatched"] else run_match(asked, given)
    covariates = asked.covariates
    with work_bar("testing", quiet=given["quiet"], color=not given["no_color"]) as progress:
        balance = match_balance(
            dict(zip(covariates.names, covariates.matrix.T, strict=True)),
            covariates.treated,
            matched,
            boot=given["boot"],
            ks=not given["no_ks"],
            weights=asked.weights,
            # As matching draws its lots: the same table gives the same numbers again.
            seed=0 if given["seed"] is None else given["seed"],
            estimand=given["estimand"],
            r_compatible=given["r_compatible"],
            progress=progress,
        )
    put_out(
        Found(
            "equipoise.balance/1",
            {},
            balance,
            balance.love_plot,
            lambda: conclude_balance(given, asked, matched, balance),
        ),
        given,
    )
    return 0
