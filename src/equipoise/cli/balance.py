"""``equipoise balance``: how alike treated and controls are, before and after matching."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli.command_line import Remembering
from equipoise.cli.matching_options import (
    balance_of,
    ks_options,
    matching_options,
    read_match_table,
    run_match,
    table_options,
)
from equipoise.cli.matching_output import (
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
@ks_options(500)
@output_options("Draw the standardized differences")
def command(**arguments: Any) -> int:
    """Compare treated and controls of FILE (CSV or Parquet) in every covariate.

    They are matched as `equipoise match` would with the same options.
    """
    from equipoise.report.builders.matching import balance_document

    check_outputs(arguments)
    table = read_match_table(arguments)
    result = None if arguments["unmatched"] else run_match(table, arguments)
    from equipoise.cli.progress import work_bar

    with work_bar("testing", quiet=arguments["quiet"], color=not arguments["no_color"]) as progress:
        balance = balance_of(
            table,
            result,
            arguments,
            boot=arguments["boot"],
            ks=not arguments["no_ks"],
            # As matching draws its lots: the same table gives the same numbers again.
            seed=arguments["seed"] or 0,
            progress=progress,
        )
    write_output(
        arguments,
        schema="equipoise.balance/1",
        document={},
        balance=balance,
        plot=balance.love_plot,
        report=balance_document(balance, result, match_question(arguments, table)),
    )
    return 0
