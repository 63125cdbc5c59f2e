"""Equipoise measures whether one thing is really faster than another, and by how much.

``compare`` runs commands in random blocks and returns a :class:`Result`; the error rate of its
verdict counts every look. ``match``, ``match_balance``, ``gen_match`` and ``observe`` take data
frames with the names of columns; they and ``genoud`` need ``equipoise[matching]``.
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

_HOMES = {
    "EquipoiseError": "model.errors",
    **dict.fromkeys(("Result", "compare", "compare_code", "run", "show"), "api"),
}

_OF_MATCHING = frozenset({"gen_match", "genoud", "match", "match_balance", "observe"})
"""Functions of the extra ``equipoise[matching]``, which `equipoise.matching` hands on."""


def __getattr__(name: str) -> Any:
    # Imported when used: `equipoise --help` must not wait for NumPy.
    import importlib

    if name in _OF_MATCHING:
        from equipoise.matching import handed_on

        return handed_on(name)
    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    return getattr(importlib.import_module(f"equipoise.{_HOMES[name]}"), name)


def load_ipython_extension(shell: Any) -> None:
    """Give IPython the magics ``%compare`` and ``%%compare``: ``%load_ext equipoise``."""
    from equipoise.magics import register

    register(shell)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
