"""``equipoise match``: the effect of a treatment by matching, from a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import matching, options
from equipoise.cli.command_line import CommandRecorder, command_line
from equipoise.cli.options import tables
from equipoise.cli.options.tables import TableRequest

if TYPE_CHECKING:
    from equipoise_matching.matching.match import MatchResult

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


class MatchRequest(TableRequest, frozen=True, kw_only=True):
    """What `equipoise match` is asked for."""

    metric: str
    propensity: bool
    bias_adjust: bool
    variance_neighbors: int | None
    variance: str


@click.command(
    "match",
    cls=CommandRecorder,
    epilog="Example: equipoise match people.csv --treatment treat --outcome re78 "
    "--covariates age,educ",
)
@tables.table_options
@tables.outcome_option
@tables.match_options
@options.flag("--bias-adjust", help="Adjust for what matching left, by regression.")
@tables.variance_neighbors_option
@click.option(
    "--variance",
    type=click.Choice(["population", "sample"]),
    default="population",
    show_default=True,
)
@tables.matched_option
@tables.plot_options("Draw the standardized differences before and after")
@options.request_of(MatchRequest)
def command(request: MatchRequest) -> int:
    """Match treated and controls of FILE (CSV or Parquet) and estimate the effect.

    Without --outcome they are matched only. The balance of the covariates stands below;
    `equipoise balance` tests it.
    """
    from equipoise.cli.work_bars import work_bar
    from equipoise.report.builders.matching import table_document
    from equipoise_matching.tables.matching import match_table
    from equipoise_matching.tables.problem import read_table

    output = request.checked_output()
    table = read_table(request.file, request.columns)
    with work_bar("matching", quiet=output.quiet, color=output.color) as progress:
        result = match_table(
            table,
            request.pairing,
            metric=request.metric,
            propensity=request.propensity,
            bias_adjust=request.bias_adjust,
            variance_neighbors=request.variance_neighbors,
            variance=request.variance,
            progress=progress,
        )
    matching.write_rows(result, request.matched)
    document = {
        "schema": "equipoise.match/1",
        "estimand": request.pairing.estimand,
        **{name: getattr(result.among, name) for name in _NUMBERS},
        **matching.pairs_document(result),
        **_strata_document(result.among),
    }
    report, balance = table_document(result, command_line()), result.balance
    matching.write(request, output, report, balance.love_plot, document, balance)
    return 0


def _strata_document(result: MatchResult) -> dict[str, Any]:
    """Return the strata and their factors as JSON has them; empty without strata."""
    from equipoise_matching.matching.stratified import MatchByResult

    if not isinstance(result, MatchByResult):
        return {}
    strata = [asdict(stratum) for stratum in result.strata]
    for stratum in strata:
        stratum["values"] = [
            value if isinstance(value, str | int | float) else str(value)
            for value in stratum["values"]
        ]
    return {"by": list(result.by), "strata": strata}
