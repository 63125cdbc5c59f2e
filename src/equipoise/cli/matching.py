"""What ``match``, ``genmatch`` and ``balance`` share: options, the table, matching, outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import asdict

from equipoise.cli import options
from equipoise.cli.output_options import OutputOptions, check_folder, write_output
from equipoise.model.errors import UnusableInput
from equipoise.shared.pictures import require_figures

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise.report.document import Document
    from equipoise_matching.matching.balance import Balance, SmallestP
    from equipoise_matching.matching.match import MatchResult
    from equipoise_matching.tables.matching import TableMatch
    from equipoise_matching.tables.problem import MatchTable, Pairing


class _FiniteRange(click.FloatRange):
    """A number in a range; not a number and infinity are outside every range."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return one value as a number of the range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _calipers(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[float, ...] | None:
    if value is None:
        return None
    number = _FiniteRange(min=0)
    return tuple(number.convert(part, option, context) for part in value.split(","))


def count_option(name: str, default: int, explanation: str, *, low: int = 0) -> options.Option:
    """Return an option that takes a whole number from ``low`` up."""
    return click.option(
        name,
        type=click.IntRange(min=low),
        default=default,
        metavar="N",
        show_default=True,
        help=explanation,
    )


def ks_options(default_boot: int) -> options.Option:
    """Return the options of the Kolmogorov-Smirnov tests."""
    return options.options_of(
        count_option("--boot", default_boot, "Bootstrap samples of the KS tests; 0 for none."),
        options.flag("--no-ks", help="Test no distribution, only means."),
    )


def output_options(plot_help: str) -> options.Option:
    """Return the options that name the files to write."""
    return options.options_of(
        options.report_option,
        options.figures_option,
        options.file_option(
            "--plot", "plot_file", metavar="FILE.html", help=f"{plot_help}; .svg and .png too."
        ),
        options.output_options,
    )


table_options = options.options_of(
    click.argument("file", type=click.Path(path_type=Path)),
    click.option(
        "--treatment",
        metavar="COLUMN[=TREATED:CONTROL]",
        help="Who was treated: 0 or 1, yes or no, or two of the values of the column.",
    ),
    options.names_option(
        "--covariates", metavar="A,B,C", help="What to compare: numbers, yes and no, or words."
    ),
    click.option(
        "--formula",
        metavar="FORMULA",
        help="Treatment and covariates at once: 'treat ~ age + I(age**2) + age:educ'.",
    ),
    click.option("--weights", metavar="COLUMN", help="How much each row counts before matching."),
    options.missing_option(default="refuse", show_default=True),
)
"""FILE and the options that name its columns."""
outcome_option = click.option(
    "--outcome", metavar="COLUMN", help="What the treatment may have changed."
)
matched_option = options.file_option(
    "--matched",
    metavar="FILE.csv|.parquet",
    help="Write the matched data set: the rows in pairs, with their weights.",
)
variance_neighbors_option = click.option(
    "--variance-neighbors",
    type=click.IntRange(min=0),
    metavar="N",
    show_default="2; 0 with --r-compatible",
    help="Nearest rows of the same arm that give each row's variance; 0 for one variance of all "
    "rows, which is too small where controls are noisier.",
)
pairing_options = options.options_of(
    click.option(
        "--estimand", type=click.Choice(["ATT", "ATC", "ATE"]), default="ATT", show_default=True
    ),
    count_option("--m", 1, "Controls for each treated.", low=1),
    options.names_option("--exact", help="Columns that must be equal in pairs."),
    click.option(
        "--caliper",
        metavar="SD[,SD…]",
        callback=_calipers,
        help="The widest distance, in standard deviations: one, or one a covariate.",
    ),
    options.flag("--no-replace", help="Use each control once."),
    options.flag("--no-ties", help="Break ties at random."),
    options.flag("--common-support", help="Drop rows outside the overlap."),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", show_default="all cores"),
    click.option("--seed", type=click.IntRange(min=0), metavar="N", help="For every draw."),
    options.flag("--r-compatible", help="R's quirks (docs/matching.md)."),
)
"""The options that say who may be matched with whom."""
match_options = options.options_of(
    pairing_options,
    options.flag(
        "--propensity", help="Match on a propensity score of the covariates instead of themselves."
    ),
    click.option(
        "--metric",
        type=click.Choice(["inverse_variance", "mahalanobis"]),
        default="inverse_variance",
        show_default=True,
    ),
    click.option(
        "--order",
        type=click.Choice(["data", "largest", "smallest"]),
        show_default="largest with --propensity, else data",
        help="With --no-replace: who finds a match first, by the propensity score or by the rows.",
    ),
    options.names_option("--by", help="Match only among rows that agree in these columns."),
)
"""The options of a match by fixed weights."""


def output_of(arguments: dict[str, Any]) -> OutputOptions:
    """Return where the outputs go; check first that the files can be written."""
    output = OutputOptions.from_options(arguments, source=arguments["file"])
    matched = arguments.get("matched")
    if matched is not None:
        from equipoise_matching.tables.reading import check_writable

        check_folder(matched)
        check_writable(matched)
        if matched.resolve() == arguments["file"].resolve():
            raise UnusableInput(
                f"--matched {matched} is the table itself", hint="name another file for it"
            )
    if arguments["plot_file"] is not None:
        check_folder(arguments["plot_file"])
        require_figures()
    return output


def table_and_pairing(arguments: Mapping[str, Any]) -> tuple[MatchTable, Pairing]:
    """Read the columns that the options name; return them, and who may be matched with whom."""
    from equipoise_matching.tables.problem import MatchColumns, Pairing, read_table

    replaces, ties = not arguments["no_replace"], not arguments["no_ties"]
    pairing = Pairing.among({**arguments, "replace": replaces, "ties": ties})
    return read_table(arguments["file"], MatchColumns.among(arguments)), pairing


def write_rows(result: TableMatch, file: Path | None) -> None:
    """Write the matched data set, if a file for it is named."""
    if file is not None:
        from equipoise.files.writing import write_or_refuse
        from equipoise_matching.tables.reading import file_content

        write_or_refuse(file, file_content(file, result.matched_columns()), "name another file")


def write(
    arguments: Mapping[str, Any],
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
    if arguments["plot_file"] is not None:
        from equipoise.figures.save import save

        save(plot(), arguments["plot_file"])

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
