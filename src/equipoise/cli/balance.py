"""``equipoise balance``: how alike treated and controls are, before and after matching."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli.command_line import Remembering
from equipoise.cli.matching_options import (
    matching_options,
    read_match_table,
    run_match,
    table_options,
)
from equipoise.cli.matching_output import (
    MatchingOutput,
    check_outputs,
    match_question,
    output_options,
    write_output,
)


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
@output_options("Draw the standardized differences")
def command(**arguments: Any) -> int:
    """Compare treated and controls of FILE (CSV or Parquet) in every covariate.

    They are matched as `equipoise match` would with the same options.
    """
    from equipoise.matching.balance import match_balance
    from equipoise.report.builders.matching import balance_document

    check_outputs(arguments)
    table = read_match_table(arguments)
    result = None if arguments["unmatched"] else run_match(table, arguments)
    covariates = table.covariates
    from equipoise.cli.progress import work_bar

    with work_bar("testing", quiet=arguments["quiet"], color=not arguments["no_color"]) as progress:
        balance = match_balance(
            dict(zip(covariates.names, covariates.matrix.T, strict=True)),
            covariates.treated,
            result,
            boot=arguments["boot"],
            ks=not arguments["no_ks"],
            weights=table.weights,
            # As matching draws its lots: the same table gives the same numbers again.
            seed=arguments["seed"] or 0,
            estimand=arguments["estimand"],
            r_compatible=arguments["r_compatible"],
            progress=progress,
        )
    output = MatchingOutput(
        "equipoise.balance/1",
        {},
        balance,
        balance.love_plot,
        balance_document(balance, result, match_question(arguments, table)),
    )
    write_output(output, arguments)
    return 0
