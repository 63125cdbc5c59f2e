"""Which values are hidden, and what stands in their place.

The value of a variable is hidden unless the variable is a known tuning variable. Different values
of one variable have different placeholders, so that a reader sees that two conditions differ.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from msgspec import Struct

from equipoise.model.redaction import TUNING_VARIABLES, placeholder

Assigned = tuple[str, str]
"""A variable's name and one value of it."""

LEAST_LENGTH = 8
"""Characters from which on a value is hidden in a name also where its variable is not named."""
_ORDINARY = re.compile(r"[a-z]+(?:[-_ ][a-z]+)*|[0-9.]+[A-Za-z%]*")
"""Words, or a number with its unit: they stay in a name, which would say nothing without them."""


class HiddenValues(Struct, frozen=True):
    """The hidden values of one or several campaigns, each with its placeholder."""

    placeholders: Mapping[Assigned, str]
    names: Mapping[str, str]
    """The names of conditions that hold hidden values, each with the name that is shown."""
    in_texts: Mapping[str, str]
    """Texts that are replaced outside commands, each with its replacement."""
    pattern: re.Pattern[str] | None
    """Finds what is replaced in a text; ``None`` if nothing is."""

    def replacement(self, name: str, value: str) -> str | None:
        """Return the placeholder of a value; ``None`` if the value is shown."""
        return self.placeholders.get((name, value))

    def in_text(self, text: str) -> str:
        """Return a name or a message without hidden values.

        An assignment (``TOKEN=x``) is replaced, and a value that stands alone if it is long enough
        and no ordinary word.
        """
        if self.pattern is None:
            return text
        return self.pattern.sub(lambda found: self.in_texts[found[0]], text)

    def with_names(self, names: Mapping[str, str]) -> HiddenValues:
        """Return the same values, with these names of conditions replaced in texts as well."""
        return HiddenValues(self.placeholders, names, *_in_texts(self.placeholders, names))


def hidden_values(assigned: Iterable[Assigned]) -> HiddenValues:
    """Give every value that is hidden its placeholder, in the order in which they come."""
    placeholders: dict[Assigned, str] = {}
    numbers: dict[str, int] = {}
    for name, value in assigned:
        if value and name not in TUNING_VARIABLES and (name, value) not in placeholders:
            numbers[name] = numbers.get(name, 0) + 1
            placeholders[name, value] = placeholder(name, numbers[name])
    return HiddenValues(placeholders, {}, *_in_texts(placeholders, {}))


def _in_texts(
    placeholders: Mapping[Assigned, str], names: Mapping[str, str]
) -> tuple[Mapping[str, str], re.Pattern[str] | None]:
    replaced: dict[str, str] = {}
    patterns: dict[str, str] = {}
    for (name, value), text in placeholders.items():
        for written in (value, shlex.quote(value), f'"{value}"'):
            whole = f"{name}={written}"
            replaced[whole] = f"{name}={text}"
            patterns[whole] = rf"(?<![A-Za-z0-9_]){re.escape(whole)}(?![A-Za-z0-9_])"
        quoted = shlex.quote(f"{name}={value}")
        if quoted not in replaced:
            # A word of a quoted command.
            replaced[quoted] = shlex.quote(f"{name}={text}")
            patterns[quoted] = re.escape(quoted)
        if len(value) >= LEAST_LENGTH and not _ORDINARY.fullmatch(value):
            replaced.setdefault(value, text)
            patterns.setdefault(value, re.escape(value))
    replaced |= names
    patterns |= {name: re.escape(name) for name in names}
    longest_first = sorted(patterns, key=len, reverse=True)
    pattern = re.compile("|".join(patterns[one] for one in longest_first)) if patterns else None
    return replaced, pattern
