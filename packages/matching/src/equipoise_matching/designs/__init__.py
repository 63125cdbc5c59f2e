"""Designs: choose and weight the rows to compare, without looking at an outcome.

Every function takes the treatment and the covariates, and returns a `Design`.

- ``units``: the treatment and the covariates, checked
- ``design``: the result of every design
- ``strata``, ``coarsening``, ``stratum_pairs``: strata of bins (``cem``), and pairs within strata
- ``subclasses``: strata of the propensity score (``subclassify``)
- ``cardinality``, ``largest_sample``: the largest samples with balanced means
  (``cardinality_match``, ``profile_match``)
"""
