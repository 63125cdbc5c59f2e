"""Designs: choose and weight the rows to compare, without looking at an outcome.

Every function takes the treatment and the covariates, and returns a `Design`.

- ``units``: the treatment and the covariates, checked
- ``design``: the result of every design
- ``nearest``: greedy matching on a score
- ``quick``: generalised full matching, for several arms and millions of rows
"""
