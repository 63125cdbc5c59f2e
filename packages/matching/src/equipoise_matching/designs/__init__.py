"""Designs: choose and weight the rows to compare, without looking at an outcome.

Every function takes the treatment and the covariates, and returns a `Design`.

- ``units``: the treatment and the covariates, checked
- ``design``: the result of every design
- ``optimal``, ``full``: optimal pairs and optimal full matching
- ``distance_options``, ``distance``: the distances of both arms, and which pairs are admissible
- ``flow``: pairs of smallest total distance, and the proof
- ``matched_sets``: strata and weights from pairs
"""
