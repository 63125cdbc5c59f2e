"""The options that say how evidence is gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from equipoise.why.evidence.collect import FEWEST_REPETITIONS, EvidenceRequest
from equipoise.why.evidence.sources import BY_DEFAULT, ON_REQUEST, known_sources

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def evidence_options(function: Decorated) -> Decorated:
    """``--sources``, ``--instructions`` and ``--repetitions``."""
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


def evidence_request(given: dict[str, Any]) -> EvidenceRequest:
    """What is to be observed, as the options say.

    Raises
    ------
    UnusableInput
        There is no such source.
    """
    names = given["sources"]
    sources = (
        BY_DEFAULT if names is None else known_sources([one.strip() for one in names.split(",")])
    )
    if given["instructions"]:
        sources = tuple(dict.fromkeys((*sources, ON_REQUEST)))
    return EvidenceRequest(sources, given["repetitions"], given["again"])
