"""What ``match``, ``genmatch`` and ``balance`` share: options, the table, matching, outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.command_line import command_line
from equipoise.cli.output_files import check_folder
from equipoise.cli.output_options import OutputOptions, write_output
from equipoise.figures.save import require_figures
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from altair import LayerChart
    from numpy.typing import NDArray

    from equipoise.matching.balance import Balance, SmallestP
    from equipoise.matching.frames import Covariates
    from equipoise.matching.match import MatchResult
    from equipoise.matching.units import Floats
    from equipoise.report.builders.matching import Difference, MatchQuestion
    from equipoise.report.document import Document


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
        click.option("--no-ks", is_flag=True, help="Test no distribution, only means."),
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
    click.option("--treatment", metavar="COLUMN", help="Who was treated: 0 or 1."),
    options.names_option("--covariates", metavar="A,B,C", help="What to compare."),
    click.option(
        "--formula",
        metavar="FORMULA",
        help="Treatment and covariates at once: 'treat ~ age + I(age**2) + age:educ'.",
    ),
    click.option("--weights", metavar="COLUMN", help="How much each row counts before matching."),
)
"""FILE and the options that name its columns."""
outcome_option = click.option(
    "--outcome", metavar="COLUMN", help="What the treatment may have changed."
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
    options.names_option("--exact", help="Covariates that must be equal."),
    click.option(
        "--caliper",
        metavar="SD[,SD…]",
        callback=_calipers,
        help="The widest distance, in standard deviations: one, or one a covariate.",
    ),
    click.option("--no-replace", is_flag=True, help="Use each control once."),
    click.option("--no-ties", is_flag=True, help="Break ties at random."),
    click.option("--common-support", is_flag=True, help="Drop rows outside the overlap."),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", show_default="all cores"),
    click.option("--seed", type=click.IntRange(min=0), metavar="N", help="For every draw."),
    click.option("--r-compatible", is_flag=True, help="R's quirks (docs/matching.md)."),
)
"""The options that say who may be matched with whom."""
matching_options = options.options_of(
    pairing_options,
    click.option(
        "--propensity",
        is_flag=True,
        help="Match on a propensity score of the covariates instead of themselves.",
    ),
    click.option(
        "--metric",
        type=click.Choice(["inverse_variance", "mahalanobis"]),
        default="inverse_variance",
        show_default=True,
    ),
    options.names_option("--by", help="Match only among rows that agree in these columns."),
)
"""The options of a match by fixed weights."""


class MatchTable(Struct, frozen=True):
    """The columns of the file that the options name."""

    covariates: Covariates
    outcome: Floats | None
    weights: Floats | None
    by: dict[str, NDArray[Any]] | None
    balance: Covariates
    """Covariates to balance: those of ``--balance``, else the same."""


def matching_output(arguments: dict[str, Any]) -> OutputOptions:
    """Return where the outputs go; check first that the files can be written."""
    output = OutputOptions.from_options(arguments, source=arguments["file"])
    if arguments["plot_file"] is not None:
        check_folder(arguments["plot_file"])
        require_figures()
    return output


def read_match_table(arguments: dict[str, Any]) -> MatchTable:
    """Read the columns that the options name."""
    formula, treatment, names = (
        arguments[option] for option in ("formula", "treatment", "covariates")
    )
    if formula and (treatment or names):
        raise UnusableInput(
            "--formula names treatment and covariates itself",
            hint="leave out --treatment and --covariates, or --formula",
        )
    if not formula and not (treatment and names):
        missing = "--covariates" if treatment else "--treatment"
        raise UnusableInput(
            f"{missing} is missing", hint="give --treatment and --covariates, or --formula"
        )
    from equipoise.cli.table_file import read_table
    from equipoise.matching.frames import columns_of, covariates_of, numbers_of

    table = read_table(arguments["file"])

    def column(name: str) -> Any:
        if name not in table.column_names:
            raise UnusableInput(
                f"{arguments['file']}: no column {name}",
                hint=f"there are {', '.join(table.column_names)}",
            )
        return (columns_of(table.select([name])) or {})[name]

    if treatment in (names or ()):
        raise UnusableInput(
            f"{treatment} is the treatment and a covariate",
            hint="leave it out of --covariates: nobody is like the others in it",
        )
    if formula:
        covariates = covariates_of(formula, table)
    else:
        covariates = covariates_of(
            {name: column(name) for name in names}, {treatment: column(treatment)}
        )
    outcome, weights = (
        numbers_of(column(arguments[option]), arguments[option]) if arguments.get(option) else None
        for option in ("outcome", "weights")
    )
    by = {name: column(name) for name in arguments["by"]} if arguments.get("by") else None
    balance = covariates
    if arguments.get("balance"):
        treated = formula.partition("~")[0] if formula else treatment
        balance = covariates_of(f"{treated} ~ {arguments['balance']}", table)
    return MatchTable(covariates, outcome, weights, by, balance)


def pairing(arguments: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of ``match`` and ``gen_match`` for columns of these names."""
    exact, caliper = arguments["exact"], arguments["caliper"]
    unknown = [name for name in exact or () if name not in names]
    if unknown:
        raise UnusableInput(
            f"--exact: {', '.join(unknown)} is not matched on",
            hint=f"matched on are {', '.join(names)}",
        )
    if caliper is not None and len(caliper) not in (1, len(names)):
        raise UnusableInput(
            f"--caliper: {len(caliper)} numbers for {len(names)} covariates",
            hint=f"give one, or one each for {', '.join(names)}",
        )
    if caliper is not None:
        caliper = caliper[0] if len(caliper) == 1 else list(caliper)
    same = ("estimand", "m", "r_compatible", "threads", "seed")
    return {
        **{name: arguments[name] for name in same},
        "exact": [name in exact for name in names] if exact else None,
        "caliper": caliper,
        "replace": not arguments["no_replace"],
        "ties": not arguments["no_ties"] and not arguments["no_replace"],
    }


def run_match(table: MatchTable, arguments: dict[str, Any], **more: Any) -> Any:
    """Match as the options say; ``more`` goes to ``match`` as it is."""
    if arguments["by"] and arguments["common_support"]:
        raise UnusableInput(
            "--by and --common-support do not go together",
            hint="leave one of them out; a caliper keeps strata apart from what is too far, too",
        )
    covariates = table.covariates
    matrix, names = covariates.matrix, covariates.names
    if arguments["propensity"]:
        from equipoise.matching.propensity import score_of

        matrix, names = score_of(covariates).score[:, None], ("propensity",)
    settings = {
        **pairing(arguments, names),
        "metric": arguments["metric"],
        "weights": table.weights,
        **more,
    }
    units = (table.outcome, covariates.treated.astype(float), matrix)
    from equipoise.cli.progress import work_bar

    with work_bar("matching", quiet=arguments["quiet"], color=arguments["color"]) as progress:
        if table.by is not None:
            from equipoise.matching.stratified import match_by

            return match_by(*units, table.by, progress=progress, **settings)
        from equipoise.matching.match import match

        return match(
            *units, progress=progress, common_support=arguments["common_support"], **settings
        )


def balance_of(
    table: MatchTable, result: MatchResult | None, arguments: dict[str, Any], **more: Any
) -> Balance:
    """Return the balance of the table's covariates; ``more`` goes to ``match_balance`` as it is."""
    from equipoise.matching.balance import match_balance

    covariates = table.covariates
    return match_balance(
        dict(zip(covariates.names, covariates.matrix.T, strict=True)),
        covariates.treated,
        result,
        weights=table.weights,
        estimand=arguments["estimand"],
        r_compatible=arguments["r_compatible"],
        **more,
    )


def match_question(
    arguments: Mapping[str, Any], table: MatchTable, seed: int | None = None
) -> MatchQuestion:
    """Return what the command asks of the table, and the command that repeats it."""
    from equipoise.report.builders.matching import MatchQuestion, method_sentences

    treatment = arguments["treatment"] or arguments["formula"].partition("~")[0].strip()
    return MatchQuestion(
        source=str(arguments["file"]),
        treatment=treatment,
        outcome=arguments.get("outcome"),
        method=tuple(method_sentences(arguments, table.covariates.names)),
        command=command_line(seed),
    )


def difference_before(table: MatchTable) -> Difference | None:
    """Return the difference of the outcome before matching; ``None`` without an outcome."""
    if table.outcome is None:
        return None
    from equipoise.report.builders.matching import naive_difference

    return naive_difference(table.outcome, table.covariates.treated, table.weights)


def write_matching(
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

    def to_json() -> bytes:
        whole = {**document, **_balance_document(balance)}
        text = json.dumps(whole, indent=2, allow_nan=False, ensure_ascii=False)
        return f"{text}\n".encode()

    write_output(report, to_json, output)


def numbers_of(result: MatchResult, names: Sequence[str]) -> dict[str, float | None]:
    """Return fields of a match as JSON has them: what is unknown or infinite is null."""
    return {name: _json(getattr(result, name)) for name in names}


def pairs_document(result: MatchResult) -> dict[str, Any]:
    """Return the pairs and the dropped rows of a match as JSON has them."""
    columns = (result.treated_index, result.control_index, result.weights)
    return {
        "pairs": [
            {"treated": treated, "control": control, "weight": weight}
            for treated, control, weight in zip(*(each.tolist() for each in columns), strict=True)
        ],
        "dropped": result.dropped_index.tolist(),
    }


def _balance_document(balance: Balance) -> dict[str, Any]:
    def smallest(smallest: SmallestP) -> dict[str, Any]:
        where = [{"variable": name, "test": test} for name, test in smallest.where]
        return {"value": _json(smallest.value), "where": where}

    after = balance.smallest_after
    return {
        "balance": [{name: _json(value) for name, value in row.items()} for row in balance.rows()],
        "smallest_p_before": smallest(balance.smallest_before),
        "smallest_p_after": None if after is None else smallest(after),
    }


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
