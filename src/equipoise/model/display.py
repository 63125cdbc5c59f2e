"""Charts and notebook HTML of results, which a higher room provides.

A result that cannot draw itself asks here for a form of itself by name. The face
(``equipoise/__init__.py``) registers the module that makes these forms.
"""

from __future__ import annotations

import importlib
from typing import Any

_PROVIDERS: list[str] = []


def register_provider(module: str) -> None:
    """Let a module provide the displays of results; it is imported at first use."""
    _PROVIDERS[:] = [module]


def display(form: str, result: object, *arguments: Any) -> Any:
    """Return a form of a result: what the provider's function of this name makes of it."""
    (module,) = _PROVIDERS
    return getattr(importlib.import_module(module), form)(result, *arguments)
