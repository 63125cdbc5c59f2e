"""The options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from equipoise.design.limits import (
    GATE_BLOCKS,
    GATE_MIN_EFFECT,
    RANGES,
    STUDY_BLOCKS,
    CampaignLimits,
    NumberRange,
)
from equipoise.ledger.opening import DEFAULT_LEDGER, LEDGER_VARIABLE, default_ledger
from equipoise.model.plan import Judgement

LEAST_WHY_BUDGET_S = 120.0
"""Least default budget of a campaign of interventions; a larger one of the explained campaign
is its default."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def names_in(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Return the names in ``a,b,c``, for an option's callback."""
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise click.BadParameter(f"'{value}' has an empty name.", context, option)
    return names


class _WholeNumber(click.IntRange):
    """A whole number in the range of `RANGES`, with the error of the Python interface."""

    def __init__(self, number_range: NumberRange) -> None:
        super().__init__(min=int(number_range.low), max=int(number_range.high))
        self.number_range = number_range

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value as a number of the range."""
        return _read(self.number_range, value, param)


class _RealNumber(click.FloatRange):
    """A number in the range of `RANGES`, with the error of the Python interface."""

    name = "number"

    def __init__(self, number_range: NumberRange) -> None:
        high = None if number_range.high == math.inf else number_range.high
        super().__init__(min=number_range.low, max=high, min_open=number_range.above_low)
        self.number_range = number_range

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the value as a number of the range."""
        return float(_read(self.number_range, value, param))


def _read(number_range: NumberRange, value: Any, param: click.Parameter | None) -> Any:
    option = "" if param is None else max(param.opts, key=len)
    return number_range.read(value, f"{option} {value}".strip())


def number(name: str) -> _WholeNumber | _RealNumber:
    """Return the type of an option that takes one of the numbers of `RANGES`."""
    number_range = RANGES[name]
    return _WholeNumber(number_range) if number_range.whole else _RealNumber(number_range)


class FiniteRange(click.FloatRange):
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


def ledger_option(function: Decorated) -> Decorated:
    """Add ``--ledger FILE``."""
    return click.option(
        "--ledger",
        "ledger_path",
        metavar="FILE",
        type=click.Path(path_type=Path),
        default=default_ledger,
        show_default=f"{DEFAULT_LEDGER}, or ${LEDGER_VARIABLE}",
        help="Where campaigns are kept.",
    )(function)


def output_options(function: Decorated) -> Decorated:
    """Add ``--json``, ``--quiet`` and ``--no-color``."""
    for option in (
        click.option("--no-color", is_flag=True, help="Print without colour."),
        click.option("--quiet", is_flag=True, help="Print no progress and no screen."),
        click.option(
            "--json",
            "json_file",
            metavar="FILE",
            help="Write the result document; '-' for stdout, and then nothing else is there.",
        ),
    ):
        function = option(function)
    return function


def report_option(function: Decorated) -> Decorated:
    """Add ``--report FILE``."""
    return click.option(
        "--report",
        "report_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write a report: .html is one page that can be sent; .md, .tex or .csv.",
    )(function)


def show_env_option(function: Decorated) -> Decorated:
    """Add ``--show-env``."""
    return click.option(
        "--show-env",
        is_flag=True,
        help="Show the values of all environment variables: they are hidden but for tuning "
        "variables.",
    )(function)


def figures_option(function: Decorated) -> Decorated:
    """Add ``--figures FOLDER``."""
    return click.option(
        "--figures",
        "figures",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help="Write each figure there, as .html, .svg and .png.",
    )(function)


def timeout_option(function: Decorated) -> Decorated:
    """Add ``--timeout``."""
    return click.option(
        "--timeout",
        type=number("timeout"),
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help="End a trial after so long; it counts as slowest.",
    )(function)


def against_option(function: Decorated) -> Decorated:
    """Add ``--against FILE`` and ``--allow``."""
    function = click.option(
        "--allow",
        metavar="A,B",
        callback=names_in,
        help="What alone may differ between the two environments: anything else is refused.",
    )(function)
    return click.option(
        "--against",
        "against_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Hold every row against this --json of another host, or of this one earlier.",
    )(function)


def why_option(function: Decorated) -> Decorated:
    """Add ``--why`` and ``--no-test``."""
    for option in (
        no_test_option,
        click.option(
            "--why",
            is_flag=True,
            help="Observe the largest gap that is called: where the extra time is, and why.",
        ),
    ):
        function = option(function)
    return function


def no_test_option(function: Decorated) -> Decorated:
    """Add ``--no-test``."""
    return click.option(
        "--no-test", is_flag=True, help="Of why, gather evidence only: change nothing to test it."
    )(function)


def concurrent_option(function: Decorated) -> Decorated:
    """Add ``--allow-concurrent``."""
    return click.option(
        "--allow-concurrent",
        is_flag=True,
        envvar="EQUIPOISE_ALLOW_CONCURRENT",
        help="Measure though another campaign runs on this host.",
    )(function)


def hyperfine_exports(function: Decorated) -> Decorated:
    """Add ``--export-json``, ``--export-csv`` and ``--export-markdown`` in hyperfine's forms."""
    for kind in ("markdown", "csv", "json"):
        function = click.option(
            f"--export-{kind}",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help=f"Write the times as hyperfine's --export-{kind} does.",
        )(function)
    return function


def layout_options(function: Decorated) -> Decorated:
    """Add ``--layouts`` and ``--aslr``; unset is ``None``."""
    for option in (
        click.option(
            "--aslr",
            metavar="[drawn|on|off]",
            help="Whether the kernel draws addresses in a layout; 'drawn' (the usual): by a coin.",
        ),
        click.option(
            "--layouts",
            type=number("layouts"),
            metavar="K",
            help="Compare over K memory layouts; {layout} in a command is the number of each.",
        ),
    ):
        function = option(function)
    return function


class _Defaults(Struct, frozen=True):
    """Defaults of options, as their help shows them."""

    blocks: str
    min_blocks: str
    budget: str


def stopping_options(function: Decorated) -> Decorated:
    """Add ``--blocks``, ``--min-blocks``, ``--budget`` and ``--precision``; unset is ``None``."""
    return _stopping_options(function, _Defaults("200", "5", "60"))


def why_stopping_options(function: Decorated) -> Decorated:
    """Add the same options to a command that explains a campaign."""
    budget = f"the campaign's, at least {LEAST_WHY_BUDGET_S:g}"
    return _stopping_options(function, _Defaults("200", "5", budget))


def resume_stopping_options(function: Decorated) -> Decorated:
    """Add the same options to a command that resumes a campaign."""
    return _stopping_options(function, _Defaults(*["the campaign's"] * 3))


def study_stopping_options(function: Decorated) -> Decorated:
    """Add the same options to a command that runs a study with limits of its own."""
    blocks, budget = f"the study's, or {STUDY_BLOCKS}", "the study's, or 60"
    return _stopping_options(function, _Defaults(blocks, "the study's, or 5", budget))


def gate_stopping_options(function: Decorated) -> Decorated:
    """Add the same options to a gate."""
    return _stopping_options(function, _Defaults(str(GATE_BLOCKS), "5", "60"))


def _stopping_options(function: Decorated, defaults: _Defaults) -> Decorated:
    for option in (
        click.option(
            "--precision",
            type=number("precision"),
            metavar="PERCENT",
            help="Go on until the interval is at most this wide.",
        ),
        click.option(
            "--budget",
            type=number("budget"),
            metavar="SECONDS",
            show_default=defaults.budget,
            help="Stop after about so many seconds.",
        ),
        click.option(
            "--min-blocks",
            type=number("min_blocks"),
            metavar="N",
            show_default=defaults.min_blocks,
            help="Look for a verdict from this block on; given, it beats the budget.",
        ),
        click.option(
            "--blocks",
            type=number("blocks"),
            metavar="N",
            show_default=defaults.blocks,
            help="At most so many blocks.",
        ),
    ):
        function = option(function)
    return function


def limits_of(given: Mapping[str, Any]) -> CampaignLimits:
    """Return the numbers that limit and judge a campaign, from the options of a command."""
    return CampaignLimits(**{name: given.get(name) for name in CampaignLimits.__struct_fields__})


def seed_option(function: Decorated) -> Decorated:
    """Add ``--seed``."""
    return click.option(
        "--seed",
        type=number("seed"),
        metavar="N",
        help="The seed of the coin; drawn and recorded if it is not given.",
    )(function)


def judging_options(function: Decorated) -> Decorated:
    """Add ``--alpha``, ``--min-effect`` and ``--seed``."""
    return _judging_options(function, Judgement().min_effect)


def gate_judging_options(function: Decorated) -> Decorated:
    """Add the same options to a gate, which often runs on busy hosts."""
    return _judging_options(function, GATE_MIN_EFFECT)


def study_judging_options(function: Decorated) -> Decorated:
    """Add the same options to a command that runs a study with an alpha of its own."""
    return _judging_options(function, Judgement().min_effect, of_study=True)


def _judging_options(
    function: Decorated, min_effect: float, *, of_study: bool = False
) -> Decorated:
    before = "the study's, or " if of_study else ""
    for option in (
        seed_option,
        click.option(
            "--alpha",
            type=number("alpha"),
            default=None if of_study else Judgement().alpha,
            show_default=f"{before}{Judgement().alpha:g}",
            help="The largest chance of a wrong verdict.",
        ),
        click.option(
            "--min-effect",
            type=number("min_effect"),
            default=None if of_study else min_effect,
            show_default=f"{before}{min_effect:g}",
            metavar="PERCENT",
            help="The smallest effect that matters; 0 for none.",
        ),
    ):
        function = option(function)
    return function
