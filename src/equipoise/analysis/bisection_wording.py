"""Sentences of a bisection: what each culprit did, and the answer of the whole search."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.analysis.wording import change_clause, signed_percent
from equipoise.model.bisection import (
    BisectBranch,
    BisectCommit,
    BisectGap,
    BisectResult,
    Culprit,
)
from equipoise.model.metrics import inverse_interval
from equipoise.model.plan import short_name
from equipoise.model.quantities import counted, joined, names_of

_LONGEST_SUBJECT = 60
"""Letters of a subject that a sentence shows."""


def culprit_sentence(culprit: Culprit, metric: str, *, more_is_better: bool = False) -> str:
    """Return what a culprit did to the program: ``1a2b3c4d5e (Sort) made it 3.10 % slower``.

    Parameters
    ----------
    culprit
        A culprit with its numbers; its own summary is not read.
    """
    named = commit_phrase(culprit.commit, culprit.subject, culprit.not_built)
    if culprit.ratio is None:
        return f"{named} made a difference whose size is not known."
    change = change_clause(metric, culprit.ratio, culprit.ratio_ci, more_is_better=more_is_better)
    return f"{named} made {change}."


def commit_phrase(commit: str, subject: str, not_built: Sequence[str]) -> str:
    """Return a commit with its subject, and those before it that may be meant as well.

    Parameters
    ----------
    not_built
        Whole names of the commits right before it that do not build.
    """
    named = f"{short_name(commit)} ({shortened(subject)})"
    if not not_built:
        return named
    others = joined([*map(short_name, not_built), named], "or")
    return f"Either {others}" if len(not_built) == 1 else f"One of {others}"


def branch_sentence(branch: BisectBranch, *, more_is_better: bool = False) -> str:
    """Return what the search of a merge's branch found.

    Parameters
    ----------
    branch
        Its numbers, and the sentences of its culprits; its own summary is not read.
    """
    merge, culprits = short_name(branch.merge), branch.culprits
    left = [one for one in branch.candidates if one.status == "left"]
    if branch.missing:
        them = joined(list(map(short_name, branch.missing)))
        verb = "does" if len(branch.missing) == 1 else "do"
        return f"The branch of {merge} cannot be searched: {them} {verb} not build or run."
    match branch.verdict:
        case "culprit":
            return f"In the branch of {merge}, {_uncapitalized(culprits[0])}"
        case "several" if culprits:
            return f"In the branch of {merge}, {_parts(culprits)}."
        case "several":
            return f"No single commit of the branch of {merge} made the whole difference."
        case "set":
            found = f"; {_parts(culprits)}" if culprits else ""
            return (
                f"If one commit of the branch of {merge} made the whole difference, it is "
                f"{_among(left)}{found}."
            )
        case "no difference":
            excluded = _excluded(branch.gap, more_is_better=more_is_better)
            return (
                f"The branch of {merge} alone makes no difference{excluded}: the merge itself made "
                "it."
            )
        case "undecided":
            blocks = counted(len(branch.course), "block")
            return (
                f"Whether the branch of {merge} alone makes a difference is not known after "
                f"{blocks}."
            )


def bisect_sentence(result: BisectResult, *, more_is_better: bool = False) -> str:
    """Return the answer of a search, with what the branches of merges made of it.

    Parameters
    ----------
    result
        A result with its numbers and the sentences of its culprits and branches; its own summary
        is not read.
    more_is_better
        Whether the cost is the inverse of the metric.
    """
    answer = _answer(result, more_is_better=more_is_better)
    return " ".join((answer, *(one.summary for one in result.branches)))


def _answer(result: BisectResult, *, more_is_better: bool) -> str:
    certainty = f"{100.0 * (1.0 - result.alpha):g} %"
    culprits = result.culprits
    left = [one for one in result.candidates if one.status == "left"]
    match result.verdict:
        case "culprit":
            group = "one of these" if culprits[0].not_built else "this one"
            return (
                f"{culprits[0].summary} If one commit made the whole difference, it is {group} "
                f"({certainty})."
            )
        case "several" if culprits:
            return f"No single commit made the whole difference: {_parts(culprits)}."
        case "several":
            return (
                "No single commit made the whole difference; no part of it could be found in "
                f"{len(result.course)} blocks."
            )
        case "set":
            found = f"; {_parts(culprits)}" if culprits else ""
            return (
                f"If one commit made the whole difference, it is {_among(left)} "
                f"({certainty}){found}."
            )
        case "no difference":
            return (
                f"There is no difference to search for: {_names(result)} are the same, within "
                f"{result.min_effect:g} %{_excluded(result.gap, more_is_better=more_is_better)}."
            )
        case "undecided":
            blocks = counted(len(result.course), "block")
            return (
                f"Whether {_names(result)} differ is not known after {blocks}"
                f"{_excluded(result.gap, more_is_better=more_is_better)}."
            )


def _uncapitalized(culprit: Culprit) -> str:
    """Return the sentence of a culprit inside another one: ``either 1a2b3c4d5e or …``."""
    sentence = culprit.summary
    return sentence[0].lower() + sentence[1:] if culprit.not_built else sentence


def _names(result: BisectResult) -> str:
    return f"{result.good.label} and {result.bad.label}"


def _parts(culprits: Sequence[Culprit]) -> str:
    names = names_of([short_name(one.commit) for one in culprits])
    return f"{names} {'each made' if len(culprits) > 1 else 'made'} a part of it"


def _among(left: Sequence[BisectCommit]) -> str:
    """Return the commits that are left, as far as a sentence has room for them."""
    names = [short_name(one.commit) for one in left]
    if len(names) == 1:
        return f"{names[0]} ({shortened(left[0].subject)})"
    if len(names) == 2:
        return joined(names, "or")
    return f"one of {len(names)} commits, {names[0]} to {names[-1]}"


def _excluded(gap: BisectGap, *, more_is_better: bool) -> str:
    """Return which differences are excluded: ``; a difference above +0.80 % is excluded``."""
    low, high = inverse_interval(gap.ratio_ci) if more_is_better else gap.ratio_ci
    known = [f"below {signed_percent(low)}"] if low else []
    known += [f"above {signed_percent(high)}"] if high else []
    if not known:
        return ""
    return f"; a difference {joined(known, 'or')} is excluded"


def shortened(subject: str) -> str:
    """Return the subject of a commit, cut to what a sentence has room for."""
    if len(subject) <= _LONGEST_SUBJECT:
        return subject
    return subject[: _LONGEST_SUBJECT - 1] + "…"
