"""``equipoise balance``: how alike treated and controls are, before and after matching."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import matching, options
from equipoise.cli.command_line import Remembering


@click.command(
    "balance",
    cls=Remembering,
    epilog="Example: equipoise balance people.csv --treatment treat --covariates age,educ",
)
@matching.table_options
@options.flag("--unmatched", help="Match nothing: only the balance before.")
@matching.match_options
@matching.ks_options(500)
@matching.output_options("Draw the standardized differences")
def command(**arguments: Any) -> int:
    """Compare treated and controls of FILE (CSV or Parquet) in every covariate.

    They are matched as `equipoise match` would with the same options.
    """
    from equipoise.report.builders.matching import balance_document

    output = matching.output_of(arguments)
    table = matching.read_match_table(arguments)
    pairing = matching.pairing_of(arguments)
    result = None if arguments["unmatched"] else matching.run_match(table, pairing, arguments)
    from equipoise.cli.progress_bars import work_bar
    from equipoise.tables.results import balance_of, table_document

    with work_bar("testing", quiet=output.quiet, color=output.color) as progress:
        balance = balance_of(
            table,
            result,
            pairing,
            boot=arguments["boot"],
            ks=not arguments["no_ks"],
            # As matching draws its lots: the same table gives the same numbers again.
            seed=arguments["seed"] or 0,
            progress=progress,
        )
    report = balance_document(balance, result, matching.match_question(arguments, table))
    document = {"schema": "equipoise.balance/1", **table_document(table, result, balance)}
    matching.write(arguments, output, report, balance.love_plot, document, balance)
    return 0
