"""Packages of the extras (``equipoise[matching]``, …), imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any

from equipoise.model.errors import UnusableInput


def require(package: str, purpose: str, extra: str = "matching") -> Any:
    """Import a package of an extra; ``purpose`` is a plural, such as "data frames".

    Raises
    ------
    UnusableInput
        The package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise UnusableInput(
            f"{purpose} need {package}, which is not installed",
            hint=f"pip install 'equipoise[{extra}]'",
        ) from error
