"""Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)).

- ``genoud``: the public function and its result.
- ``options``: the checked options.
- ``search``: the search by the native engine, for any evaluator of batches.
- ``polish``: BFGS, and derivatives by differences.
- ``executors``: evaluation of batches here, in threads, in other processes or on a Dask cluster.
- ``worker``: the code that runs in those processes: a function as an evaluator of batches.

SciPy is imported when a search polishes.
"""

from __future__ import annotations

from equipoise_matching.genetic.genoud import GenoudResult, genoud
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.search import Generation, SearchResult, search

__all__ = ["Generation", "GenoudResult", "SearchOptions", "SearchResult", "genoud", "search"]
