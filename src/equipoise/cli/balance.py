"""``equipoise balance``: how alike treated and controls are, before and after matching."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import matching, options
from equipoise.cli.command_line import Remembering, command_line


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
    from equipoise.cli.work_bars import work_bar
    from equipoise.report.builders.matching import balance_document
    from equipoise_matching.tables.matching import balance_of, question_of, run_match

    output = matching.output_of(arguments)
    table, pairing = matching.table_and_pairing(arguments)
    options = {name: arguments[name] for name in ("metric", "propensity")}
    result = None
    if not arguments["unmatched"]:
        with work_bar("matching", quiet=output.quiet, color=output.color) as progress:
            result = run_match(table, pairing, progress=progress, **options)
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
    options["unmatched"] = arguments["unmatched"]
    question = question_of(table, pairing, options)
    report = balance_document(balance, result, question, command_line(None))
    document = {"schema": "equipoise.balance/1", **matching.table_document(table, result, balance)}
    matching.write(arguments, output, report, balance.love_plot, document, balance)
    return 0
