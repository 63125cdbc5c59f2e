"""Draw charts of effects and of balance with altair, from values and names.

- ``balance``: covariates before and after matching, and the course of a genetic search
- ``designs``: the balance of several designs, and histograms of a covariate
- ``estimates``: estimates of one effect, one below the other

altair is the extra ``equipoise-matching[charts]``; only these modules import it.
"""
