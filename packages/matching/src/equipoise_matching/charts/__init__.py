"""Charts of effects and of balance, made with altair; they take values and names, not tables.

- ``balance``: covariates before and after matching, and the course of a genetic search
- ``estimates``: estimates of one effect below each other

altair is the extra ``equipoise-matching[charts]``; only these modules import it.
"""
