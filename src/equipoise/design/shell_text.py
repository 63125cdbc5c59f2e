"""Paths that are put into a line for a shell: only such that a shell reads as they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping

from equipoise.model.errors import UnusableInput

_PLAIN = re.compile(r"[\w@%+=:,./ -]*")
"""Letters of any language, digits and signs that mean nothing to a shell; a space only parts."""


def refuse_in_shell_line(line: str, paths: Mapping[str, str], hint: str) -> None:
    """Refuse a path with signs that a shell would obey, where the line names it in braces.

    How a sign would have to be quoted depends on what stands around it in the line, a
    substitution within quotes included, so it is not tried.

    Parameters
    ----------
    line
        For the shell, with names in braces.
    paths
        What each name stands for.

    Raises
    ------
    UnusableInput
        Naming the path.
    """
    for name, path in paths.items():
        if "{" + name + "}" in line and _PLAIN.fullmatch(path) is None:
            raise UnusableInput(
                f"{{{name}}} in a line for the shell stands for {path}, which a shell would not "
                "take as it stands",
                hint=hint,
            )
