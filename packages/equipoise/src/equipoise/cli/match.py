"""``equipoise match``: estimate the effect of a treatment by matching rows of a table.

`genmatch` and `balance` use the functions of this module that write rows, a chart and JSON.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import asdict

from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, command_line
from equipoise.cli.options import tables
from equipoise.cli.options.outputs import OutputOptions
from equipoise.cli.options.tables import TableRequest
from equipoise.cli.writing import write_output

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise.report.document import Document
    from equipoise_matching.matching.balance import Balance, SmallestP
    from equipoise_matching.matching.match import MatchResult
    from equipoise_matching.tables.matching import TableMatch
    from equipoise_matching.tables.problem import MatchTable


def write_matched_rows(result: TableMatch, file: Path | None) -> None:
    """Write the matched rows, unless ``file`` is ``None``."""
    if file is not None:
        from equipoise.files.writing import write_or_refuse
        from equipoise_matching.tables.reading import file_content

        write_or_refuse(file, file_content(file, result.matched_columns()), "name another file")


def write_match_outputs(
    request: TableRequest,
    output: OutputOptions,
    document: Document,
    plot: Callable[[], LayerChart],
    json_fields: Mapping[str, Any],
    balance: Balance,
) -> None:
    """Write the requested files; print ``document`` unless the JSON goes to stdout.

    ``plot`` draws the chart of ``--plot``. The JSON has ``json_fields`` and fields on balance.
    """
    if request.plot_file is not None:
        from equipoise.figures.save import save

        save(plot(), request.plot_file)

    def smallest_p_as_json(smallest: SmallestP) -> dict[str, Any]:
        where = [{"variable": name, "test": test} for name, test in smallest.tests]
        return {"value": smallest.value, "where": where}

    def to_json() -> bytes:
        p_after = balance.smallest_after
        all_fields = {
            **json_fields,
            "balance": balance.rows(),
            "smallest_p_before": smallest_p_as_json(balance.smallest_before),
            "smallest_p_after": None if p_after is None else smallest_p_as_json(p_after),
        }
        # msgspec writes null for a number that is infinite or not a number.
        json_bytes = msgspec.json.encode(all_fields, enc_hook=methodcaller("tolist"))
        json_values = msgspec.json.decode(json_bytes)
        return f"{json.dumps(json_values, indent=2, ensure_ascii=False)}\n".encode()

    write_output(document, to_json, output)


def pairs_as_json(result: TableMatch) -> dict[str, Any]:
    """Return fields of the JSON document: pairs, dropped rows, missing values and warnings."""
    pairs = result.pairs
    treated_size, control_size = pairs.effective_sizes
    arrays = (pairs.treated_index, pairs.control_index, pairs.weights)
    return {
        "effective_sample_size": {"treated": treated_size, "control": control_size},
        **problems_as_json(result.table, result.array_match, result.balance),
        "pairs": [
            {"treated": treated, "control": control, "weight": weight}
            for treated, control, weight in zip(*(array.tolist() for array in arrays), strict=True)
        ],
        "dropped": pairs.dropped_index,
    }


def problems_as_json(
    table: MatchTable, result: MatchResult | None, balance: Balance
) -> dict[str, Any]:
    """Return fields of the JSON document: missing values and warnings."""
    from equipoise_matching.matching.wording import match_warnings

    return {
        "missing": asdict(table.missing),
        "warnings": [asdict(warning) for warning in match_warnings(result, balance)],
    }


_EFFECT_FIELDS = (
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
"""Fields of `MatchResult` that the JSON document has under the same names."""


class MatchRequest(TableRequest, frozen=True, kw_only=True):
    """Request of `equipoise match`."""

    metric: str
    propensity: bool
    bias_adjust: bool
    variance_neighbors: int | None
    variance: str
    """Whether the error is about the ``population`` or this ``sample``."""


@click.command(
    "match",
    cls=CommandRecorder,
    epilog="Example: equipoise match people.csv --treatment treat --outcome re78 "
    "--covariates age,educ",
)
@tables.table_options
@tables.outcome_option
@tables.match_options
@options.flag("--bias-adjust", help="Adjust for the remaining differences by regression.")
@tables.variance_neighbors_option
@click.option(
    "--variance",
    type=click.Choice(["population", "sample"]),
    default="population",
    show_default=True,
)
@tables.matched_option
@tables.plot_options("Draw the standardized differences before and after")
@options.pass_request(MatchRequest)
def command(request: MatchRequest) -> int:
    """Match treated rows of FILE (CSV or Parquet) with controls and estimate the effect.

    Without --outcome, no effect is estimated. The result has the balance of the covariates;
    `equipoise balance` also tests it.
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
    write_matched_rows(result, request.matched)
    json_fields = {
        "schema": "equipoise.match/1",
        "estimand": request.pairing.estimand,
        **{name: getattr(result.array_match, name) for name in _EFFECT_FIELDS},
        **pairs_as_json(result),
        **_strata_as_json(result.array_match),
    }
    document, balance = table_document(result, command_line()), result.balance
    write_match_outputs(request, output, document, balance.love_plot, json_fields, balance)
    return 0


def _strata_as_json(result: MatchResult) -> dict[str, Any]:
    from equipoise_matching.matching.stratified import MatchByResult

    if not isinstance(result, MatchByResult):
        return {}
    strata = [dataclasses.asdict(stratum) for stratum in result.strata]
    for stratum in strata:
        stratum["values"] = [
            value if isinstance(value, str | int | float) else str(value)
            for value in stratum["values"]
        ]
    return {"by": list(result.by), "strata": strata}
