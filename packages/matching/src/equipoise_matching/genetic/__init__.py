"""Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)).

A candidate is a vector of parameters with the values of the function there. The paper calls it an
individual. A point is any vector of parameters at which the function is evaluated.

- ``genoud``: the public function and its result.
- ``options``: the checked options.
- ``search``: the search by the native engine in Rust, with any evaluator of points.
- ``polish``: local optimisation of a candidate by BFGS, and derivatives by differences.
- ``executors``: evaluation of candidates in this process, in a pool or on a Dask cluster.
- ``worker``: the code that runs in the workers of a pool or a cluster.

A search imports SciPy only if it polishes.
"""

from __future__ import annotations

from equipoise_matching.genetic.genoud import GenoudResult, genoud
from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.search import Generation, SearchResult, search

__all__ = ["Generation", "GenoudResult", "SearchOptions", "SearchResult", "genoud", "search"]
