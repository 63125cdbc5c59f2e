"""What ``match``, ``genmatch`` and ``balance`` write: matched rows, a chart, the document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict

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


def write_rows(result: TableMatch, file: Path | None) -> None:
    """Write the matched data set, if a file for it is named."""
    if file is not None:
        from equipoise.files.writing import write_or_refuse
        from equipoise_matching.tables.reading import file_content

        write_or_refuse(file, file_content(file, result.matched_columns()), "name another file")


def write(
    request: TableRequest,
    output: OutputOptions,
    report: Document,
    plot: Callable[[], LayerChart],
    document: Mapping[str, Any],
    balance: Balance,
) -> None:
    """Write the requested files; print the report unless stdout is the document's.

    Parameters
    ----------
    report
        Document for the terminal, ``--report`` and ``--figures``.
    plot
        Function that draws the chart of ``--plot``.
    document
        The JSON document without its balance.
    """
    if request.plot_file is not None:
        from equipoise.figures.save import save

        save(plot(), request.plot_file)

    def smallest(smallest: SmallestP) -> dict[str, Any]:
        where = [{"variable": name, "test": test} for name, test in smallest.where]
        return {"value": smallest.value, "where": where}

    def to_json() -> bytes:
        after = balance.smallest_after
        whole = {
            **document,
            "balance": balance.rows(),
            "smallest_p_before": smallest(balance.smallest_before),
            "smallest_p_after": None if after is None else smallest(after),
        }
        # With null for what is unknown or infinite.
        plain = msgspec.json.decode(msgspec.json.encode(whole, enc_hook=methodcaller("tolist")))
        return f"{json.dumps(plain, indent=2, ensure_ascii=False)}\n".encode()

    write_output(report, to_json, output)


def pairs_document(result: TableMatch) -> dict[str, Any]:
    """Return the rows of a match as JSON has them: pairs, dropped rows, what was missing."""
    pairs = result.pairs
    treated, controls = pairs.effective_sizes
    columns = (pairs.treated_index, pairs.control_index, pairs.weights)
    return {
        "effective_sample_size": {"treated": treated, "control": controls},
        **table_document(result.table, result.among, result.balance),
        "pairs": [
            {"treated": treated, "control": control, "weight": weight}
            for treated, control, weight in zip(*(each.tolist() for each in columns), strict=True)
        ],
        "dropped": pairs.dropped_index,
    }


def table_document(
    table: MatchTable, among: MatchResult | None, balance: Balance
) -> dict[str, Any]:
    """Return what was missing, and what speaks against the answer, as JSON has them."""
    from equipoise_matching.matching.wording import match_warnings

    return {
        "missing": asdict(table.missing),
        "warnings": [asdict(warning) for warning in match_warnings(among, balance)],
    }
