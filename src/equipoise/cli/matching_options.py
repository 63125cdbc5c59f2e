"""The options of ``match``, ``genmatch`` and ``balance``, and the call of ``match`` they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from equipoise.cli.options import FiniteRange, names_in
from equipoise.cli.work_bar import work_bar
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.matching.distributions import Values
    from equipoise.matching.frames import Covariates

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _calipers(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[float, ...] | None:
    if value is None:
        return None
    number = FiniteRange(min=0)
    return tuple(number.convert(part, option, context) for part in value.split(","))


def table_options(function: Decorated) -> Decorated:
    """FILE and which of its columns are what."""
    for option in (
        click.option(
            "--weights", metavar="COLUMN", help="How much each row counts before matching."
        ),
        click.option(
            "--formula",
            metavar="FORMULA",
            help="Treatment and covariates at once: 'treat ~ age + I(age**2) + age:educ'.",
        ),
        click.option("--covariates", metavar="A,B,C", callback=names_in, help="What to compare."),
        click.option("--treatment", metavar="COLUMN", help="Who was treated: 0 or 1."),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        function = option(function)
    return function


def pairing_options(function: Decorated) -> Decorated:
    """Who may be matched with whom."""
    for option in (
        click.option("--no-color", is_flag=True, help="Draw without colour."),
        click.option("--quiet", is_flag=True, help="Print no progress and no table."),
        click.option("--r-compatible", is_flag=True, help="R's quirks (docs/matching.md)."),
        click.option("--seed", type=click.IntRange(min=0), metavar="N", help="For every draw."),
        click.option(
            "--threads", type=click.IntRange(min=1), metavar="N", show_default="all cores"
        ),
        click.option("--common-support", is_flag=True, help="Drop rows outside the overlap."),
        click.option("--no-ties", is_flag=True, help="Break ties at random."),
        click.option("--no-replace", is_flag=True, help="Use each control once."),
        click.option(
            "--caliper",
            metavar="SD[,SD…]",
            callback=_calipers,
            help="The widest distance, in standard deviations: one, or one a covariate.",
        ),
        click.option(
            "--exact", metavar="A,B", callback=names_in, help="Covariates that must be equal."
        ),
        click.option(
            "--m",
            type=click.IntRange(min=1),
            default=1,
            metavar="N",
            show_default=True,
            help="Controls for each treated.",
        ),
        click.option(
            "--estimand",
            type=click.Choice(["ATT", "ATC", "ATE"]),
            default="ATT",
            show_default=True,
        ),
    ):
        function = option(function)
    return function


def matching_options(function: Decorated) -> Decorated:
    """How to match by given weights."""
    for option in (
        click.option(
            "--by",
            metavar="A,B",
            callback=names_in,
            help="Match only among rows that agree in these columns.",
        ),
        click.option(
            "--metric",
            type=click.Choice(["inverse_variance", "mahalanobis"]),
            default="inverse_variance",
            show_default=True,
        ),
        click.option(
            "--propensity",
            is_flag=True,
            help="Match on a propensity score of the covariates instead of themselves.",
        ),
    ):
        function = option(function)
    return pairing_options(function)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options name in the file."""

    covariates: Covariates
    outcome: Values | None
    weights: Values | None
    by: dict[str, NDArray[Any]] | None
    balance: Covariates
    """What is to be balanced: ``--balance``, else the covariates."""


def read_asked(given: dict[str, Any]) -> Asked:
    """Read the columns that the options name.

    Raises
    ------
    UnusableInput
        Naming the file's column, or the options that do not go together.
    """
    formula, treatment, names = given["formula"], given["treatment"], given["covariates"]
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

    table = read_table(given["file"])

    def column(name: str) -> Any:
        if name not in table.column_names:
            raise UnusableInput(
                f"{given['file']}: no column {name}",
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
        numbers_of(column(given[option]), given[option]) if given.get(option) else None
        for option in ("outcome", "weights")
    )
    by = {name: column(name) for name in given["by"]} if given.get("by") else None
    balance = covariates
    if given.get("balance"):
        treated = formula.partition("~")[0] if formula else treatment
        balance = covariates_of(f"{treated} ~ {given['balance']}", table)
    return Asked(covariates, outcome, weights, by, balance)


def pairing(given: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """What ``match`` and ``gen_match`` are given of the options, for columns of these names.

    Raises
    ------
    UnusableInput
        An option names another column, or has not one number for each.
    """
    exact = None
    if given["exact"]:
        unknown = [name for name in given["exact"] if name not in names]
        if unknown:
            raise UnusableInput(
                f"--exact: {', '.join(unknown)} is not matched on",
                hint=f"matched on are {', '.join(names)}",
            )
        exact = [name in given["exact"] for name in names]
    caliper = given["caliper"]
    if caliper is not None and len(caliper) not in (1, len(names)):
        raise UnusableInput(
            f"--caliper: {len(caliper)} numbers for {len(names)} covariates",
            hint=f"give one, or one each for {', '.join(names)}",
        )
    if caliper is not None:
        caliper = caliper[0] if len(caliper) == 1 else list(caliper)
    return {
        "estimand": given["estimand"],
        "m": given["m"],
        "exact": exact,
        "caliper": caliper,
        "replace": not given["no_replace"],
        "ties": not given["no_ties"] and not given["no_replace"],
        "r_compatible": given["r_compatible"],
        "threads": given["threads"],
        "seed": given["seed"],
    }


def run_match(asked: Asked, given: dict[str, Any], **more: Any) -> Any:
    """Match as the options say; ``more`` goes to ``match`` as it is.

    Raises
    ------
    UnusableInput
        The input cannot be matched.
    """
    if given["by"] and given["common_support"]:
        raise UnusableInput(
            "--by and --common-support do not go together",
            hint="leave one of them out; a caliper keeps strata apart from what is too far, too",
        )
    covariates = asked.covariates
    matrix, names = covariates.matrix, covariates.names
    if given["propensity"]:
        from equipoise.matching.propensity import score_of

        matrix, names = score_of(covariates).score[:, None], ("propensity",)
    options = {
        **pairing(given, names),
        "metric": given["metric"],
        "weights": asked.weights,
        **more,
    }
    units = (asked.outcome, covariates.treated.astype(float), matrix)
    with work_bar("matching", quiet=given["quiet"], color=not given["no_color"]) as progress:
        if asked.by is not None:
            from equipoise.matching.stratified import match_by

            return match_by(*units, asked.by, progress=progress, **options)
        from equipoise.matching.match import match

        return match(*units, progress=progress, common_support=given["common_support"], **options)
