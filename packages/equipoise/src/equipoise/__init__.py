"""Equipoise measures whether one thing is really faster than another, and by how much.

``compare`` runs commands in random blocks and returns a :class:`Result`. The error rate of its
verdict stays valid however often you look. ``match``, ``match_balance``, ``gen_match`` and
``observe`` take data frames and names of columns; they and ``genoud`` need
``equipoise[matching]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.api import Result, compare, compare_code, run, show
    from equipoise.model.errors import EquipoiseError
    from equipoise_matching.genetic.genoud import genoud
    from equipoise_matching.tables.interface import gen_match, match, match_balance, observe

__all__ = [
    "EquipoiseError",
    "Result",
    "compare",
    "compare_code",
    "gen_match",
    "genoud",
    "match",
    "match_balance",
    "observe",
    "run",
    "show",
]

_MODULES = {
    "EquipoiseError": "model.errors",
    **dict.fromkeys(("Result", "compare", "compare_code", "run", "show"), "api"),
}

_MATCHING_FUNCTIONS = frozenset({"gen_match", "genoud", "match", "match_balance", "observe"})
"""Functions of the extra ``equipoise[matching]``, which `equipoise.matching` imports."""


def __getattr__(name: str) -> Any:
    # Import late, so that `equipoise --help` does not wait for NumPy.
    import importlib

    if name in _MATCHING_FUNCTIONS:
        from equipoise.matching import matching_function

        return matching_function(name)
    if name not in _MODULES:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    return getattr(importlib.import_module(f"equipoise.{_MODULES[name]}"), name)


def load_ipython_extension(shell: Any) -> None:
    """Give IPython the magics ``%compare`` and ``%%compare``, after ``%load_ext equipoise``."""
    from equipoise.magics import register

    register(shell)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
