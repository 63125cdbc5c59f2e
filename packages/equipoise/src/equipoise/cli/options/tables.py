"""The options of commands that match the rows of a table: columns, matching rules and output files.

A treated row is matched with control rows whose covariates are similar. ATT, ATC and ATE are the
average effects on the treated, on the controls, and on all rows.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from equipoise.cli.options.declaration import Option, file_option, flag, names_option, option_group
from equipoise.cli.options.outputs import (
    OutputOptions,
    check_folder,
    figures_option,
    output_options,
    report_option,
)
from equipoise.model.errors import UnusableInput
from equipoise_matching.tables.problem import MatchColumns, Pairing


class _FiniteRange(click.FloatRange):
    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the value as a number in the range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _split_calipers(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[float, ...] | None:
    if value is None:
        return None
    number_type = _FiniteRange(min=0)
    return tuple(number_type.convert(number, option, context) for number in value.split(","))


def count_option(name: str, default: int, explanation: str, *, minimum: int = 0) -> Option:
    """Return an option that takes a whole number of at least ``minimum``."""
    return click.option(
        name,
        type=click.IntRange(min=minimum),
        default=default,
        metavar="N",
        show_default=True,
        help=explanation,
    )


def ks_options(default_boot: int) -> Option:
    """Return the options of the Kolmogorov-Smirnov (KS) tests."""
    return option_group(
        count_option(
            "--boot", default_boot, "Bootstrap samples of the Kolmogorov-Smirnov tests; 0 for none."
        ),
        flag(
            "--no-ks",
            "ks",
            flag_value=False,
            default=True,
            help="Do not test distributions, only means.",
        ),
    )


def plot_options(plot_help: str) -> Option:
    """Return the options for output files; ``plot_help`` explains the chart of ``--plot``."""
    return option_group(
        report_option,
        figures_option,
        file_option(
            "--plot", "plot_file", metavar="FILE.html", help=f"{plot_help}; .svg and .png too."
        ),
        output_options,
    )


def missing_option(**settings: Any) -> Option:
    """Return ``--missing``; ``settings`` are further arguments of ``click.option``."""
    return click.option(
        "--missing",
        type=click.Choice(["refuse", "drop", "indicator"]),
        help="What to do if a value is missing: refuse the table, drop the row, or keep the row "
        "with an extra covariate that marks it.",
        **settings,
    )


table_options = option_group(
    click.argument("file", type=click.Path(path_type=Path)),
    click.option(
        "--treatment",
        metavar="COLUMN[=TREATED:CONTROL]",
        help="Column that says which rows were treated: 0 or 1, yes or no, or two named values.",
    ),
    names_option(
        "--covariates",
        default=(),
        metavar="A,B,C",
        help="Columns to compare: numbers, yes and no, or names of groups.",
    ),
    click.option(
        "--formula",
        metavar="FORMULA",
        help="Treatment and covariates in one formula: 'treat ~ age + I(age**2) + age:educ'.",
    ),
    click.option("--weights", metavar="COLUMN", help="Column with the weight of each row."),
    missing_option(default="refuse", show_default=True),
)
"""The argument FILE and the options that name columns of the file."""
outcome_option = click.option(
    "--outcome", metavar="COLUMN", help="Column that the treatment may have changed."
)
matched_option = file_option(
    "--matched",
    metavar="FILE.csv|.parquet",
    help="Write the matched rows in pairs, with their weights.",
)
variance_neighbors_option = click.option(
    "--variance-neighbors",
    type=click.IntRange(min=0),
    metavar="N",
    show_default="2; 0 with --r-compatible",
    help="Estimate the variance of each row from its N nearest rows of the same group. With 0 all "
    "rows share one variance, which is too small if controls are noisier.",
)
pairing_options = option_group(
    click.option(
        "--estimand", type=click.Choice(["ATT", "ATC", "ATE"]), default="ATT", show_default=True
    ),
    count_option("--m", 1, "Number of controls for each treated row.", minimum=1),
    names_option("--exact", default=(), help="Columns in which matched rows must be equal."),
    click.option(
        "--caliper",
        metavar="SD[,SD…]",
        callback=_split_calipers,
        help="Maximum distance of a match in standard deviations: one number for all covariates, "
        "or one number for each.",
    ),
    flag("--no-replace", "replace", flag_value=False, default=True, help="Use each control once."),
    flag("--no-ties", "ties", flag_value=False, default=True, help="Break ties at random."),
    flag("--common-support", help="Drop rows outside the range that both groups share."),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", show_default="all cores"),
    click.option(
        "--seed", type=click.IntRange(min=0), metavar="N", help="Seed of all random draws."
    ),
    flag("--r-compatible", help="Match as R's package Matching (docs/methods/matching.md)."),
)
"""The options that say which rows may be matched with each other."""
match_options = option_group(
    pairing_options,
    flag("--propensity", help="Match on the propensity score instead of the covariates."),
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
        help="With --no-replace: order in which rows get a match: as in the table, or by the "
        "propensity score.",
    ),
    names_option("--by", default=(), help="Match rows only within groups of these columns."),
)
"""The options of a match with fixed weights; `genmatch` searches for weights."""


class TableRequest(Struct, frozen=True, kw_only=True):
    """A table, its columns, the matching rules, and the output files."""

    file: Path
    columns: MatchColumns
    pairing: Pairing
    output: OutputOptions
    plot_file: Path | None
    matched: Path | None = None
    """File for the matched rows."""

    def checked_output(self) -> OutputOptions:
        """Check that every file can be written; return the output options.

        Raise `UnusableInput` if a file cannot be written, or would replace the table.
        """
        output = self.output.checked(source=self.file)
        if self.matched is not None:
            from equipoise_matching.tables.reading import check_writable

            check_folder(self.matched)
            check_writable(self.matched)
            if self.matched.resolve() == self.file.resolve():
                raise UnusableInput(
                    f"--matched {self.matched} would replace the table that is read",
                    hint="name another file with --matched",
                )
        if self.plot_file is not None:
            from equipoise.shared.pictures import require_figures

            check_folder(self.plot_file)
            require_figures()
        return output
