"""Paths that lie elsewhere on every host: the working folder, the package, its environment, builds.

A plan names absolute paths of the machine on which it was made. `portable` puts a placeholder for
each path of that machine, and `local_plan` puts the host's own in its place. Names of conditions
stay as they are: they are the same on every host.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from equipoise.cluster.messages import Build, other_version
from equipoise.ledger.rows import from_text, to_text
from equipoise.measure.installation import native_programs
from equipoise.model.kinds import terms_from
from equipoise.model.packages import folders_with_programs
from equipoise.model.plan import Plan

FOLDER = "{equipoise:folder}"
"""Stands for the working folder of the campaign."""
PACKAGE = "{equipoise:package}"
"""Stands for the folder of the installed package."""
ENVIRONMENT = "{equipoise:environment}"
"""Stands for the virtual environment of the interpreter."""
_OTHER_PACKAGE = "{{equipoise:package:{}}}"
_BUILD = "{{equipoise:build:{}}}"
_CONDITION_FIELDS = "command environment hooks process server mapped_from output".split()
"""Fields of a condition that may name a path."""
_MEASURE_FIELDS = ("input", "output")
"""Fields of the measurement that may name a path."""
_PATH_START = r"(?<![\w./-])"
_PATH_END = r"""(?=$|[/:;,\s"'])"""


class Places(Struct, frozen=True):
    """Folders of one machine that others have elsewhere."""

    folder: str
    """Absolute path of the working folder."""
    builds: tuple[str, ...] = ()
    """Folder of each level that a study builds, in the order of the order's builds."""
    package: str = str(native_programs().parent)
    packages: Mapping[str, str] = field(
        default_factory=lambda: {name: str(one) for name, one in folders_with_programs().items()}
    )
    """Folder of each package beside Equipoise that has programs, by its name."""
    environment: str = sys.prefix
    """Folder of the virtual environment. A folder of the system gets no placeholder."""

    def portable(self, text: str) -> str:
        """Return a text with placeholders for the paths of this machine."""
        for path, placeholder in self._placeholders():
            if path.strip("/") and path != sys.base_prefix:
                text = re.sub(_PATH_START + re.escape(path) + _PATH_END, placeholder, text)
        return text

    def local(self, text: str) -> str:
        """Return a text with the paths of this machine for the placeholders."""
        for path, placeholder in self._placeholders():
            text = text.replace(placeholder, path)
        return text

    def _placeholders(self) -> Sequence[tuple[str, str]]:
        """Return each path with its placeholder; what may lie inside of another comes first."""
        builds = [(path, _BUILD.format(number)) for number, path in enumerate(self.builds)]
        return (
            *builds,
            (self.package, PACKAGE),
            *((path, _OTHER_PACKAGE.format(name)) for name, path in self.packages.items()),
            (self.environment, ENVIRONMENT),
            (self.folder, FOLDER),
        )


def portable(plan: Plan, builds: Sequence[str] = ()) -> str:
    """Return a plan as an order has it.

    ``builds`` are the folders in which this machine has built the levels of a study, in the order
    of `portable_builds`.
    """
    places = Places(plan.measure.working_folder, tuple(builds))
    document = msgspec.to_builtins(plan)
    document["measure"]["working_folder"] = FOLDER
    return to_text(_with_paths(document, places.portable))


def portable_builds(lines: Mapping[str, str], folder: str) -> tuple[Build, ...]:
    """Return what every host builds itself.

    ``lines`` build the levels, by name, with the paths of this machine; ``folder`` is the plan's.
    """
    places = Places(folder)
    return tuple(Build(level, places.portable(line)) for level, line in lines.items())


def local_plan(text: str, places: Places) -> Plan:
    """Return the plan of an order, with the paths of this machine.

    Raise `UnusableInput` if the text is no plan.
    """
    try:
        document = _with_paths(from_text(text), places.local)
        document["measure"]["working_folder"] = places.folder
        return msgspec.convert(document, Plan, dec_hook=terms_from)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise other_version(f"the plan of the order cannot be read: {error}") from error


def has_terms_of(ordered: str, recorded: str) -> bool:
    """Return whether a recorded plan is that of an order, up to what may name a path."""
    try:
        return _without_paths(from_text(ordered)) == _without_paths(from_text(recorded))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _without_paths(document: dict[str, Any]) -> dict[str, Any]:
    no_paths: dict[str, Any] = {
        "conditions": [_without(each, _CONDITION_FIELDS) for each in document["conditions"]]
    }
    no_paths["measure"] = _without(document["measure"], (*_MEASURE_FIELDS, "working_folder"))
    return {**document, **no_paths}


def _without(table: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _with_paths(document: Any, change: Callable[[str], str]) -> dict[str, Any]:
    """Return the document of a plan with each text changed that may hold a path."""
    conditions = [_changed_at(one, _CONDITION_FIELDS, change) for one in document["conditions"]]
    measure = _changed_at(document["measure"], _MEASURE_FIELDS, change)
    return {**document, "conditions": conditions, "measure": measure}


def _changed_at(
    table: Mapping[str, Any], keys: Sequence[str], change: Callable[[str], str]
) -> dict[str, Any]:
    return {key: _changed(each, change) if key in keys else each for key, each in table.items()}


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _changed(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_changed(each, change) for each in value]
    return value


def inside(path: str) -> bool:
    """Return whether a path is relative and stays inside of its folder, as written."""
    parts = Path(path).parts
    clean = os.path.normpath(path) == path and "\0" not in path
    return bool(parts) and clean and not os.path.isabs(path) and parts[0] not in ("..", ".")
