"""The options of `equipoise why`: what is observed, what is tried, and how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from equipoise.cli import options
from equipoise.design.coin import fresh_seed
from equipoise.measure.installation import host_site
from equipoise.model.plan import Plan, Stopping
from equipoise.why.evidence.collect import FEWEST_REPETITIONS, EvidenceRequest
from equipoise.why.evidence.sources import BY_DEFAULT, ON_REQUEST, known_sources
from equipoise.why.experiment.plan import ExperimentRequest
from equipoise.why.interventions.own import user_command, user_variable

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def evidence_options(function: Decorated) -> Decorated:
    """Add ``--sources``, ``--instructions`` and ``--repetitions``."""
    for option in (
        click.option(
            "--repetitions",
            type=click.IntRange(min=FEWEST_REPETITIONS, max=1000),
            metavar="N",
            help="Runs of each condition under each source; by default 3, or 2 of long runs.",
        ),
        click.option(
            "--instructions", is_flag=True, help="Count instructions, too: 20 to 100 times as slow."
        ),
        click.option(
            "--sources",
            metavar="NAME,…",
            help=f"What observes; by default {', '.join(BY_DEFAULT)} (docs/why.md).",
        ),
    ):
        function = option(function)
    return function


def experiment_options(function: Decorated) -> Decorated:
    """Add ``--no-test``, ``--try``, ``--try-command``, ``--only``, and those of a campaign."""
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


def evidence_request(values: dict[str, Any]) -> EvidenceRequest:
    """Return what is to be observed, as the options say.

    Raises
    ------
    UnusableInput
        There is no such source.
    """
    names = values["sources"]
    sources = (
        BY_DEFAULT if names is None else known_sources([one.strip() for one in names.split(",")])
    )
    if values["instructions"]:
        sources = tuple(dict.fromkeys((*sources, ON_REQUEST)))
    return EvidenceRequest(sources, values["repetitions"], values["again"])


def experiment_request(values: dict[str, Any], explained: Plan) -> ExperimentRequest:
    """Return what is to be tried on this campaign's gap, as the options say.

    Raises
    ------
    UnusableInput
        An option cannot be read.
    """
    own = [user_variable(text) for text in values["tries"]]
    if values["try_commands"]:
        site = host_site()
        own.extend(user_command(text, site) for text in values["try_commands"])
    default = default_experiment(explained)
    return ExperimentRequest(
        stopping=options.limits_of(values).stopping(default.stopping),
        alpha=default.alpha if values["alpha"] is None else values["alpha"],
        seed=default.seed if values["seed"] is None else values["seed"],
        own=tuple(own),
        only=values["only"],
    )


def default_experiment(explained: Plan) -> ExperimentRequest:
    """Return what is tried without options: all that fits the causes."""
    budget_s = max(options.LEAST_WHY_BUDGET_S, explained.stopping.budget_s)
    return ExperimentRequest(Stopping(budget_s=budget_s), explained.judgement.alpha, fresh_seed())


def needs_experiment(values: dict[str, Any]) -> bool:
    """Return whether the options ask for what an earlier campaign may not have tried."""
    return bool(values["tries"] or values["try_commands"] or values["only"] or values["again"])
