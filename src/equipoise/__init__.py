"""Equipoise measures whether one thing is really faster than another, and by how much.

``compare`` runs commands in random blocks and returns a :class:`Result`; the error rate of its
verdict counts every look. ``match``, ``match_balance``, ``gen_match`` and ``observe`` take data
frames with the names of columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.model.display import register_provider

if TYPE_CHECKING:
    from equipoise import genoud
    from equipoise.api import Result, compare, compare_code, run, show
    from equipoise.model.errors import EquipoiseError
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

_HOMES = {
    "EquipoiseError": "model.errors",
    **dict.fromkeys(("Result", "compare", "compare_code", "run", "show"), "api"),
    **dict.fromkeys(("gen_match", "match", "match_balance", "observe"), "tables.interface"),
}

# The rooms of numerics draw nothing: what a notebook shows of their results is made above them.
register_provider("equipoise_matching.matching.drawing")


def __getattr__(name: str) -> Any:
    # Imported when used: `equipoise --help` must not wait for NumPy (design.md §6).
    import importlib

    if name == "genoud":
        return importlib.import_module("equipoise_matching.genetic")
    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    return getattr(importlib.import_module(f"equipoise.{_HOMES[name]}"), name)


def load_ipython_extension(shell: Any) -> None:
    """Give IPython the magics ``%compare`` and ``%%compare``: ``%load_ext equipoise``."""
    from equipoise.magics import register

    register(shell)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
