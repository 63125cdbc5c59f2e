"""``equipoise balance``: compare treated rows with controls, before and after matching."""

from __future__ import annotations

import click

from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, command_line
from equipoise.cli.match import problems_as_json, write_match_outputs
from equipoise.cli.options import tables
from equipoise.cli.options.tables import TableRequest


class BalanceRequest(TableRequest, frozen=True, kw_only=True):
    """Request of `equipoise balance`."""

    unmatched: bool
    metric: str
    propensity: bool
    boot: int
    """Number of bootstrap samples of the Kolmogorov-Smirnov tests."""
    ks: bool
    """Whether to make Kolmogorov-Smirnov (KS) tests."""


@click.command(
    "balance",
    cls=CommandRecorder,
    epilog="Example: equipoise balance people.csv --treatment treat --covariates age,educ",
)
@tables.table_options
@options.flag("--unmatched", help="Do not match: report only the balance of all rows.")
@tables.match_options
@tables.ks_options(500)
@tables.plot_options("Draw the standardized differences")
@options.pass_request(BalanceRequest)
def command(request: BalanceRequest) -> int:
    """Compare treated rows of FILE (CSV or Parquet) with controls in every covariate.

    The rows are matched as by `equipoise match` with the same options.
    """
    from equipoise.cli.work_bars import work_bar
    from equipoise.report.builders.matching import balance_document
    from equipoise_matching.tables.matching import balance_of, question_of, run_match
    from equipoise_matching.tables.problem import read_table

    output, pairing = request.checked_output(), request.pairing
    table = read_table(request.file, request.columns)
    result = None
    if not request.unmatched:
        with work_bar("matching", quiet=output.quiet, color=output.color) as progress:
            result = run_match(
                table,
                pairing,
                metric=request.metric,
                propensity=request.propensity,
                progress=progress,
            )
    with work_bar("testing", quiet=output.quiet, color=output.color) as progress:
        balance = balance_of(
            table,
            result,
            pairing,
            boot=request.boot,
            ks=request.ks,
            # The default seed of matching is 0, too: the same table always gives the same numbers.
            seed=pairing.seed or 0,
            progress=progress,
        )
    settings = {name: getattr(request, name) for name in ("metric", "propensity", "unmatched")}
    question = question_of(table, pairing, settings)
    document = balance_document(balance, result, question, command_line())
    json_fields = {"schema": "equipoise.balance/1", **problems_as_json(table, result, balance)}
    write_match_outputs(request, output, document, balance.love_plot, json_fields, balance)
    return 0
