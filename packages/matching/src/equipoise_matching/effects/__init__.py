"""Effects: estimate what the treatment changed, from the rows and the weights of a design.

Each file imports only from earlier entries of this list:

- ``weight_model``: how weights depend on a fitted model
- ``sample``: the rows of an effect, checked, and the options
- ``result``: the estimate of an effect, and estimates of several
- ``variance``: standard errors by clusters, by rows and by the bootstrap
- ``arm_means``: mean outcomes under each arm, and their contrasts
- ``outcome_model``: g-computation with weighted regressions
- ``survival``: hazard ratios and chances of survival
- ``cautions``: sentences on an effect whose interval may be wrong
- ``estimate``: the effect after a design, of each pair of arms and in subgroups
- ``aipw``: augmented inverse probability weighting with cross-fitting
- ``imputed``: several imputed data sets, pooled by Rubin's rules
- ``signed_rank``, ``matched_sets``: Rosenbaum's bounds for pairs and for matched sets
- ``sensitivity``: Rosenbaum's bounds and the E-value
- ``omitted_factor``, ``robustness``: the robustness value of a regression
"""
