"""Draw charts of effects and of balance with altair, from values and names.

- ``balance``: covariates before and after matching, and the course of a genetic search
- ``estimates``: estimates of one effect, one below the other

altair is the extra ``equipoise-matching[charts]``; only these modules import it.
"""
