"""Charts and notebook HTML of results, which higher rooms provide.

A result that cannot draw itself asks here for a form of itself by name. The face
(``equipoise/__init__.py``) registers, for each room, the module that makes these forms.
"""

from __future__ import annotations

import importlib
from typing import Any

_PROVIDERS: dict[str, str] = {}


def register_provider(room: str, module: str) -> None:
    """Let a module provide the displays of a room's results; it is imported at first use."""
    _PROVIDERS[room] = module


def display(room: str, form: str, result: object, *arguments: Any) -> Any:
    """Return a form of a room's result: what the provider's function of this name makes of it."""
    provider = importlib.import_module(_PROVIDERS[room])
    return getattr(provider, form)(result, *arguments)
