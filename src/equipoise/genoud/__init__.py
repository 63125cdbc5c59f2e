"""Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)).

SciPy (the extra ``equipoise[matching]``) is imported when a search polishes.
"""

from __future__ import annotations

from equipoise.genoud.drive import Found, Generation, search
from equipoise.genoud.genoud import genoud
from equipoise.genoud.options import SearchOptions
from equipoise.genoud.result import GenoudResult

__all__ = ["Found", "Generation", "GenoudResult", "SearchOptions", "genoud", "search"]
