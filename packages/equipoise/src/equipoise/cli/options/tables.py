"""The options of a table: its columns, who may be matched with whom, and the files that result."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from equipoise.cli.options.declaration import (
    Option,
    file_option,
    flag,
    names_option,
    option_group,
)
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


def count_option(name: str, default: int, explanation: str, *, low: int = 0) -> Option:
    """Return an option that takes a whole number from ``low`` up."""
    return click.option(
        name,
        type=click.IntRange(min=low),
        default=default,
        metavar="N",
        show_default=True,
        help=explanation,
    )


def ks_options(default_boot: int) -> Option:
    """Return the options of the Kolmogorov-Smirnov tests."""
    return option_group(
        count_option("--boot", default_boot, "Bootstrap samples of the KS tests; 0 for none."),
        flag(
            "--no-ks",
            "ks",
            flag_value=False,
            default=True,
            help="Test no distribution, only means.",
        ),
    )


def plot_options(plot_help: str) -> Option:
    """Return the options that name the files to write."""
    return option_group(
        report_option,
        figures_option,
        file_option(
            "--plot", "plot_file", metavar="FILE.html", help=f"{plot_help}; .svg and .png too."
        ),
        output_options,
    )


def missing_option(**settings: Any) -> Option:
    """Return ``--missing``; ``settings`` hold its default, or how the help shows it."""
    return click.option(
        "--missing",
        type=click.Choice(["refuse", "drop", "indicator"]),
        help="What to do where a value is missing: refuse the table, leave out the row, or keep it "
        "with a covariate that says so.",
        **settings,
    )


table_options = option_group(
    click.argument("file", type=click.Path(path_type=Path)),
    click.option(
        "--treatment",
        metavar="COLUMN[=TREATED:CONTROL]",
        help="Who was treated: 0 or 1, yes or no, or two of the values of the column.",
    ),
    names_option(
        "--covariates",
        by_default=(),
        metavar="A,B,C",
        help="What to compare: numbers, yes and no, or words.",
    ),
    click.option(
        "--formula",
        metavar="FORMULA",
        help="Treatment and covariates at once: 'treat ~ age + I(age**2) + age:educ'.",
    ),
    click.option("--weights", metavar="COLUMN", help="How much each row counts before matching."),
    missing_option(default="refuse", show_default=True),
)
"""FILE and the options that name its columns."""
outcome_option = click.option(
    "--outcome", metavar="COLUMN", help="What the treatment may have changed."
)
matched_option = file_option(
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
pairing_options = option_group(
    click.option(
        "--estimand", type=click.Choice(["ATT", "ATC", "ATE"]), default="ATT", show_default=True
    ),
    count_option("--m", 1, "Controls for each treated.", low=1),
    names_option("--exact", by_default=(), help="Columns that must be equal in pairs."),
    click.option(
        "--caliper",
        metavar="SD[,SD…]",
        callback=_calipers,
        help="The widest distance, in standard deviations: one, or one a covariate.",
    ),
    flag("--no-replace", "replace", flag_value=False, default=True, help="Use each control once."),
    flag("--no-ties", "ties", flag_value=False, default=True, help="Break ties at random."),
    flag("--common-support", help="Drop rows outside the overlap."),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", show_default="all cores"),
    click.option("--seed", type=click.IntRange(min=0), metavar="N", help="For every draw."),
    flag("--r-compatible", help="R's quirks (docs/methods/matching.md)."),
)
"""The options that say who may be matched with whom."""
match_options = option_group(
    pairing_options,
    flag(
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
    names_option("--by", by_default=(), help="Match only among rows that agree in these columns."),
)
"""The options of a match by fixed weights."""


class TableRequest(Struct, frozen=True, kw_only=True):
    """A table, who in it may be matched with whom, and where the answer goes."""

    file: Path
    columns: MatchColumns
    pairing: Pairing
    output: OutputOptions
    plot_file: Path | None
    matched: Path | None = None
    """File for the matched data set."""

    def checked_output(self) -> OutputOptions:
        """Return where the outputs go, once every file can be written.

        Raise `UnusableInput` if a file cannot be written, or is the table itself.
        """
        output = self.output.checked(source=self.file)
        if self.matched is not None:
            from equipoise_matching.tables.reading import check_writable

            check_folder(self.matched)
            check_writable(self.matched)
            if self.matched.resolve() == self.file.resolve():
                raise UnusableInput(
                    f"--matched {self.matched} is the table itself",
                    hint="name another file for it",
                )
        if self.plot_file is not None:
            from equipoise.shared.pictures import require_figures

            check_folder(self.plot_file)
            require_figures()
        return output
