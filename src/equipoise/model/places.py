"""Where each key of a study's file stands, for errors that name file, line and key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from equipoise.model.errors import UnusableInput

Keys = tuple[str | int, ...]
"""Keys within keys, and positions in arrays of tables."""


@dataclass(frozen=True, slots=True)
class Place:
    """A key, a table or an option, as errors name it."""

    words: str = ""
    """``study.toml:4: [workload] command``; empty for what stands nowhere."""

    def fail(self, what: str, hint: str | None) -> UnusableInput:
        """The error of what is wrong there."""
        return UnusableInput(f"{self.words}: {what}" if self.words else what, hint=hint)


@dataclass(frozen=True, slots=True)
class Places:
    """The keys of one file; without a name, of none."""

    file: str = ""
    """As the user named it."""
    lines: Mapping[Keys, int] = field(default_factory=lambda: MappingProxyType({}))

    def key(self, *keys: str | int) -> Place:
        """A key of a table: ``[factors.rows] role``."""
        return self._place(keys, _in_brackets(_names(keys)[:-1]), str(keys[-1]))

    def table(self, *keys: str | int) -> Place:
        """A whole table: ``[factors.rows]``."""
        return self._place(keys, _in_brackets(_names(keys)))

    def has(self, *keys: str | int) -> bool:
        """Whether the file itself has this key."""
        return keys in self.lines

    def _place(self, keys: Keys, *words: str) -> Place:
        if not self.file:
            return Place()
        # What is missing is told with the line of the table that it is missing from.
        ends = range(len(keys), 0, -1)
        known = next((keys[:end] for end in ends if keys[:end] in self.lines), ())
        line = f":{self.lines[known]}" if known else ""
        where = " ".join(filter(None, words))
        return Place(f"{self.file}{line}: {where}" if where else f"{self.file}{line}")


def _names(keys: Keys) -> list[str]:
    return [str(one) for one in keys if isinstance(one, str)]


def _in_brackets(names: list[str]) -> str:
    return f"[{'.'.join(names)}]" if names else ""
