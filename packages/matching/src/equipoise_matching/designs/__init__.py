"""Designs: choose and weight the rows to compare, without looking at an outcome.

Every function takes the treatment and the covariates, and returns a `Design`.

- ``units``: the treatment and the covariates, checked
- ``design``: the result of every design
- ``covariate_balance``, ``balance``: how alike the arms are in one covariate, and in all
- ``drawing``: charts of the balance
- ``comparison``: designs in order of balance, and the balance of imputed data sets
- ``matches``: the result of ``match`` or ``gen_match`` as a design
- ``paragraph``: the methods paragraph of a paper
- ``strata``, ``coarsening``, ``stratum_pairs``: strata of bins (``cem``), and pairs within strata
- ``subclasses``: strata of the propensity score (``subclassify``)
- ``cardinality``, ``largest_sample``: the largest samples with balanced means
  (``cardinality_match``, ``profile_match``)
- ``nearest``: greedy matching on a score
- ``quick``: generalised full matching, for several arms and millions of rows
- ``optimal``, ``full``: optimal pairs and optimal full matching
- ``distance_options``, ``distance``: the distances of both arms, and which pairs are admissible
- ``flow``: pairs of smallest total distance, and the proof
- ``matched_sets``: strata and weights from pairs
"""
