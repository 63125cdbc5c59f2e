"""Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)).

- ``genoud``: the public function and its result.
- ``options``: the checked options.
- ``search``: the search by the native engine in Rust, with any evaluator of candidates.
- ``polish``: local optimisation of a candidate by BFGS, and derivatives by differences.
- ``executors``: evaluation of candidates in this process, in a pool or on a Dask cluster.
- ``worker``: the code that runs in those processes.

A search imports SciPy only if it polishes.
"""

from __future__ import annotations

from equipoise_matching.genetic.genoud import GenoudResult, genoud
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.search import Generation, SearchResult, search

__all__ = ["Generation", "GenoudResult", "SearchOptions", "SearchResult", "genoud", "search"]
