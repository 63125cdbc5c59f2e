"""The options of ``match``, ``genmatch`` and ``balance``, and the call of ``match`` they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from equipoise.cli.options import FiniteRange, names_in
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.matching.balance import Balance
    from equipoise.matching.distributions import Values
    from equipoise.matching.frames import Covariates
    from equipoise.matching.match import MatchResult

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _calipers(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[float, ...] | None:
    if value is None:
        return None
    number = FiniteRange(min=0)
    return tuple(number.convert(part, option, context) for part in value.split(","))


def options_of(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds options in the order in which the help lists them."""

    def decorate(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def count_option(
    name: str, default: int, explanation: str, *, low: int = 0
) -> Callable[[Decorated], Decorated]:
    """Return an option that takes a whole number from ``low`` up."""
    return click.option(
        name,
        type=click.IntRange(min=low),
        default=default,
        metavar="N",
        show_default=True,
        help=explanation,
    )


def ks_options(default_boot: int) -> Callable[[Decorated], Decorated]:
    """Return the options of the Kolmogorov-Smirnov tests."""
    return options_of(
        count_option("--boot", default_boot, "Bootstrap samples of the KS tests; 0 for none."),
        click.option("--no-ks", is_flag=True, help="Test no distribution, only means."),
    )


table_options = options_of(
    click.argument("file", type=click.Path(path_type=Path)),
    click.option("--treatment", metavar="COLUMN", help="Who was treated: 0 or 1."),
    click.option("--covariates", metavar="A,B,C", callback=names_in, help="What to compare."),
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
pairing_options = options_of(
    click.option(
        "--estimand", type=click.Choice(["ATT", "ATC", "ATE"]), default="ATT", show_default=True
    ),
    count_option("--m", 1, "Controls for each treated.", low=1),
    click.option(
        "--exact", metavar="A,B", callback=names_in, help="Covariates that must be equal."
    ),
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
    click.option("--quiet", is_flag=True, help="Print no progress and no table."),
    click.option("--no-color", is_flag=True, help="Draw without colour."),
)
"""The options that say who may be matched with whom."""
matching_options = options_of(
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
    click.option(
        "--by",
        metavar="A,B",
        callback=names_in,
        help="Match only among rows that agree in these columns.",
    ),
)
"""The options of a match by fixed weights."""


class MatchTable(Struct, frozen=True):
    """The columns of the file that the options name."""

    covariates: Covariates
    outcome: Values | None
    weights: Values | None
    by: dict[str, NDArray[Any]] | None
    balance: Covariates
    """Covariates to balance: those of ``--balance``, else the same."""


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
    exact = None
    if arguments["exact"]:
        unknown = [name for name in arguments["exact"] if name not in names]
        if unknown:
            raise UnusableInput(
                f"--exact: {', '.join(unknown)} is not matched on",
                hint=f"matched on are {', '.join(names)}",
            )
        exact = [name in arguments["exact"] for name in names]
    caliper = arguments["caliper"]
    if caliper is not None and len(caliper) not in (1, len(names)):
        raise UnusableInput(
            f"--caliper: {len(caliper)} numbers for {len(names)} covariates",
            hint=f"give one, or one each for {', '.join(names)}",
        )
    if caliper is not None:
        caliper = caliper[0] if len(caliper) == 1 else list(caliper)
    return {
        "estimand": arguments["estimand"],
        "m": arguments["m"],
        "exact": exact,
        "caliper": caliper,
        "replace": not arguments["no_replace"],
        "ties": not arguments["no_ties"] and not arguments["no_replace"],
        "r_compatible": arguments["r_compatible"],
        "threads": arguments["threads"],
        "seed": arguments["seed"],
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
    options = {
        **pairing(arguments, names),
        "metric": arguments["metric"],
        "weights": table.weights,
        **more,
    }
    units = (table.outcome, covariates.treated.astype(float), matrix)
    from equipoise.cli.progress import work_bar

    with work_bar(
        "matching", quiet=arguments["quiet"], color=not arguments["no_color"]
    ) as progress:
        if table.by is not None:
            from equipoise.matching.stratified import match_by

            return match_by(*units, table.by, progress=progress, **options)
        from equipoise.matching.match import match

        return match(
            *units, progress=progress, common_support=arguments["common_support"], **options
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
