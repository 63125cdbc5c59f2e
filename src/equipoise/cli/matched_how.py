"""How units were matched, in sentences, as the options say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

_WHO = {"ATT": "treated unit", "ATC": "control", "ATE": "unit"}
_METRICS = {
    "inverse_variance": "each scaled by its standard deviation",
    "mahalanobis": "by their Mahalanobis distance",
}
_SHOWN = 12
"""So many covariates are named."""


def matched_how(given: dict[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Sentences on the pairs; those of a search where the options are of one.

    Parameters
    ----------
    names
        Of the covariates that are matched on.
    """
    if given.get("unmatched"):
        yield "Nothing was matched: all rows are compared as they are."
        return
    count = given["m"]
    nearest = "its nearest" if count == 1 else f"its {count} nearest"
    yield (
        f"Each {_WHO[given['estimand']]} is matched with {nearest} of the other arm in "
        f"{_named(names)}, {_by(given)}. The search is exact{_ties(given)}."
    )
    limits = list(_limits(given))
    if limits:
        yield f"Pairs are limited: {'; '.join(limits)}."
    if "population" in given:
        yield (
            "The weights of the covariates are those that a genetic search found with "
            f"{given['population']:,} candidates a generation, judged by {given['fitness']} "
            "(Diamond and Sekhon 2013)."
        )
    if given["weights"]:
        yield f"Rows count as {given['weights']} says."
    if given.get("bias_adjust"):
        yield (
            "What matching left is taken out by a regression within each arm (Abadie and Imbens "
            "2011)."
        )
    if given["r_compatible"]:
        yield "The quirks of R's package Matching are reproduced (docs/matching.md)."


def _named(names: Sequence[str]) -> str:
    if len(names) > _SHOWN:
        return f"{len(names)} covariates ({', '.join(names[:_SHOWN])}, …)"
    return ", ".join(names)


def _by(given: dict[str, Any]) -> str:
    if "population" in given:
        return "weighted by what the search found"
    if given["propensity"]:
        return "all of them through a propensity score (a logistic regression)"
    return _METRICS[given["metric"]]


def _ties(given: dict[str, Any]) -> str:
    if given["no_replace"]:
        return ", each match is used once, in the order of the rows"
    if given["no_ties"]:
        return ", with replacement, ties are broken by lot"
    return ", with replacement and all ties"


def _limits(given: dict[str, Any]) -> Iterator[str]:
    if given["exact"]:
        yield f"equal in {', '.join(given['exact'])}"
    if given["caliper"]:
        widths = ", ".join(f"{width:g}" for width in given["caliper"])
        yield f"within {widths} standard deviations in each covariate"
    if given.get("by"):
        yield f"only among rows that agree in {', '.join(given['by'])}"
    if given["common_support"]:
        yield "rows outside the overlap of both groups are left out"
