"""The options that say when a campaign stops and how strict its verdict is.

`CampaignLimits` has their values.
"""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli.options.declaration import Option, flag, number_option, option_group
from equipoise.model.plan import MAX_RANKED_CONDITIONS, Judgement

timeout_option = number_option(
    "--timeout",
    default=600.0,
    metavar="SECONDS",
    help="End a trial after this many seconds; it counts as the slowest.",
)
seed_option = number_option(
    "--seed", metavar="N", help="Seed of the random order; without it a seed is drawn and recorded."
)
ranking_option = click.option(
    "--ranking",
    type=click.Choice(["on", "off"]),
    callback=lambda _context, _option, value: None if value is None else value == "on",
    show_default=f"on, without --layouts and for at most {MAX_RANKED_CONDITIONS} conditions",
    help="Whether to find the fastest condition, besides comparing each one with the baseline.",
)
layout_options = option_group(
    number_option(
        "--layouts",
        metavar="K",
        help="Compare over K memory layouts; {layout} in a command is replaced by the number of "
        "the layout.",
    ),
    click.option(
        "--aslr",
        metavar="[drawn|on|off]",
        help="Whether the kernel randomises addresses; 'drawn' (the default) decides it at random "
        "for each layout.",
    ),
)


def warmup_option(
    explanation: str = "Trials of each condition before the first block, never analysed.",
    **settings: Any,
) -> Option:
    """Return ``--warmup``; ``settings`` are further arguments of ``click.option``."""
    return number_option("-w", "--warmup", metavar="N", help=explanation, **settings)


patient_option = flag(
    "--patient",
    default=None,
    help="Exceed the budget, by less than half, if a forecast says that a verdict is near.",
)


def stopping_options(
    *, blocks: str = "no limit", min_blocks: str = "5", min_seconds: str = "1", budget: str = "60"
) -> Option:
    """Return the options that say when a campaign stops; an omitted option is ``None``.

    The arguments are the defaults that the help shows.
    """
    return option_group(
        number_option("--blocks", metavar="N", show_default=blocks, help="Run at most N blocks."),
        number_option(
            "--min-blocks",
            metavar="N",
            show_default=min_blocks,
            help="Run at least N blocks before a verdict, even beyond the budget.",
        ),
        number_option(
            "--min-seconds",
            metavar="SECONDS",
            show_default=min_seconds,
            help="Run blocks for at least this many seconds before a verdict.",
        ),
        number_option(
            "--budget",
            metavar="SECONDS",
            show_default=budget,
            help="Stop after about this many seconds.",
        ),
        number_option(
            "--precision",
            metavar="PERCENT",
            help="Continue until the interval is at most this wide.",
        ),
        number_option(
            "--tail",
            metavar="PERCENT",
            help="Continue until slow runs would appear, if at least this percentage is slow.",
        ),
    )


def judging_options(
    min_effect: float = Judgement().min_effect, *, study_defaults: bool = False
) -> Option:
    """Return ``--min-effect``, ``--alpha`` and ``--seed``.

    If ``study_defaults`` is true, a study may set the defaults of the first two options.
    """
    alpha, prefix = Judgement().alpha, "the study's, or " if study_defaults else ""
    return option_group(
        number_option(
            "--min-effect",
            default=None if study_defaults else min_effect,
            show_default=f"{prefix}{min_effect:g}",
            metavar="PERCENT",
            help="The smallest effect that matters; 0 for none.",
        ),
        number_option(
            "--alpha",
            default=None if study_defaults else alpha,
            show_default=f"{prefix}{alpha:g}",
            help="The largest probability of a wrong verdict.",
        ),
        seed_option,
    )
