"""Errors for arguments of R's MatchIt, with hints that name the argument of this package."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from equipoise_matching.shared.errors import UnusableInput

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

HINTS = {
    "distance": 'propensity=True is MatchIt\'s distance = "glm"; metric="mahalanobis" and '
    'metric="inverse_variance" match on the covariates themselves',
    "ratio": "m= is MatchIt's ratio: m=2 matches each unit with two units of the other arm",
    "data": 'give the table first: match(frame, treatment="t", covariates=[...])',
    "method": 'gen_match(...) is MatchIt\'s method = "genetic"; match(...) is "nearest"',
    "discard": 'common_support=True is MatchIt\'s discard = "both"',
    "m_order": 'order= is MatchIt\'s m.order: order="largest", "smallest" or "data"',
    "s_weights": "weights= is MatchIt's s.weights: the column with the weight of each row",
    "std_caliper": "caliper= is in standard deviations",
    "antiexact": "match within other columns with exact= or by=",
}
"""Hint for each argument of MatchIt; dots in its name are underscores here."""


class UnknownArgument(UnusableInput, TypeError):
    """An argument that a function does not have."""


def with_matchit_hints(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a function raise `UnknownArgument`, with a hint, for an argument of MatchIt."""
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def with_hint(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for name in kwargs.keys() - parameters:
            hint = HINTS.get(name.replace(".", "_"))
            if hint is not None:
                raise UnknownArgument(f"there is no argument {name}=", hint=hint)
        return function(*args, **kwargs)

    return with_hint
