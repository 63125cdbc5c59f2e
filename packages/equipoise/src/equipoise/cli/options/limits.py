"""The options that limit and judge a campaign; `CampaignLimits` holds their values."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli.options.declaration import Option, flag, number_option, option_group
from equipoise.model.plan import MAX_RANKED_CONDITIONS, Judgement

timeout_option = number_option(
    "--timeout",
    default=600.0,
    metavar="SECONDS",
    help="End a trial after so long; it counts as slowest.",
)
seed_option = number_option(
    "--seed",
    metavar="N",
    help="The seed of the coin; drawn and recorded if it is not given.",
)
ranking_option = click.option(
    "--ranking",
    type=click.Choice(["on", "off"]),
    callback=lambda _context, _option, value: None if value is None else value == "on",
    show_default=f"on, without --layouts and for at most {MAX_RANKED_CONDITIONS} conditions",
    help="Ask which condition is the fastest, or ask about the baseline alone.",
)
layout_options = option_group(
    number_option(
        "--layouts",
        metavar="K",
        help="Compare over K memory layouts; {layout} in a command is the number of each.",
    ),
    click.option(
        "--aslr",
        metavar="[drawn|on|off]",
        help="Whether the kernel draws addresses in a layout; 'drawn' (the usual): by a coin.",
    ),
)


def warmup_option(
    explanation: str = "Trials of each condition before the first block, never analysed.",
    **settings: Any,
) -> Option:
    """Return ``--warmup``; ``settings`` hold its default, or how the help shows it."""
    return number_option("-w", "--warmup", metavar="N", help=explanation, **settings)


patient_option = flag(
    "--patient",
    default=None,
    help="Exceed the budget, by less than half, where a forecast says that a verdict is near.",
)


def stopping_options(
    blocks: str = "no limit", min_blocks: str = "5", min_seconds: str = "1", budget: str = "60"
) -> Option:
    """Return the options that say when a campaign ends; unset is ``None``.

    Parameters
    ----------
    blocks, min_blocks, min_seconds, budget
        Defaults, as the help shows them.
    """
    return option_group(
        number_option("--blocks", metavar="N", show_default=blocks, help="At most so many blocks."),
        number_option(
            "--min-blocks",
            metavar="N",
            show_default=min_blocks,
            help="Look for a verdict from this block on; given, it beats the budget.",
        ),
        number_option(
            "--min-seconds",
            metavar="SECONDS",
            show_default=min_seconds,
            help="Look for a verdict once the blocks took so long; 0 for at once.",
        ),
        number_option(
            "--budget",
            metavar="SECONDS",
            show_default=budget,
            help="Stop after about so many seconds.",
        ),
        number_option(
            "--precision",
            metavar="PERCENT",
            help="Go on until the interval is at most this wide.",
        ),
        number_option(
            "--tail",
            metavar="PERCENT",
            help="Go on until slow runs that come in this percentage of runs would have shown.",
        ),
    )


def judging_options(
    min_effect: float = Judgement().min_effect, *, of_study: bool = False
) -> Option:
    """Return ``--min-effect``, ``--alpha`` and ``--seed``.

    Parameters
    ----------
    of_study
        Whether a study may have numbers of its own, which come before the defaults.
    """
    alpha, before = Judgement().alpha, "the study's, or " if of_study else ""
    return option_group(
        number_option(
            "--min-effect",
            default=None if of_study else min_effect,
            show_default=f"{before}{min_effect:g}",
            metavar="PERCENT",
            help="The smallest effect that matters; 0 for none.",
        ),
        number_option(
            "--alpha",
            default=None if of_study else alpha,
            show_default=f"{before}{alpha:g}",
            help="The largest chance of a wrong verdict.",
        ),
        seed_option,
    )
