"""The options that say what `equipoise why` changes to test a cause, and how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from equipoise.cli import options
from equipoise.design.coin import fresh_seed
from equipoise.measure.installation import host_site
from equipoise.model.plan import Plan, Stopping
from equipoise.why.experiment.proposing import Trying
from equipoise.why.interventions.own import user_command, user_try

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def experiment_options(function: Decorated) -> Decorated:
    """``--no-test``, ``--try``, ``--try-command``, ``--only``, and those of a campaign."""
    for option in (
        options.seed_option,
        click.option(
            "--alpha",
            type=options.number("alpha"),
            show_default="the campaign's",
            help="The largest chance of a wrong outcome, over all interventions.",
        ),
        options.why_stopping_options,
        click.option(
            "--only",
            "only",
            multiple=True,
            metavar="NAME",
            help="Try this intervention and no others of ours (docs/why.md).",
        ),
        click.option(
            "--try-command",
            "try_commands",
            multiple=True,
            metavar="NAME=CMD",
            help="Try both commands behind this one, or with them as its {command}.",
        ),
        click.option(
            "--try",
            "tries",
            multiple=True,
            metavar="NAME:KEY=VALUE",
            help="Try a variable of the environment on both.",
        ),
        options.no_test_option,
    ):
        function = option(function)
    return function


def trying_of(given: dict[str, Any], explained: Plan) -> Trying:
    """What is to be tried on this campaign's gap, as the options say.

    Raises
    ------
    UnusableInput
        An option cannot be read.
    """
    own = [user_try(text) for text in given["tries"]]
    if given["try_commands"]:
        site = host_site()
        own.extend(user_command(text, site) for text in given["try_commands"])
    usual = usual_trying(explained)
    return Trying(
        stopping=options.limits_of(given).stopping(usual.stopping),
        alpha=usual.alpha if given["alpha"] is None else given["alpha"],
        seed=usual.seed if given["seed"] is None else given["seed"],
        own=tuple(own),
        only=given["only"],
    )


def usual_trying(explained: Plan) -> Trying:
    """What is tried if nobody says: all that fits what was found."""
    budget_s = max(options.LEAST_WHY_BUDGET_S, explained.stopping.budget_s)
    return Trying(Stopping(budget_s=budget_s), explained.judgement.alpha, fresh_seed())


def asks_for_more(given: dict[str, Any]) -> bool:
    """Whether something is to be tried that an earlier campaign may not have tried."""
    return bool(given["tries"] or given["try_commands"] or given["only"] or given["again"])
