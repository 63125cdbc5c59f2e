"""Weights: weight the rows so that the arms have the same covariates, without choosing rows.

Every function takes the treatment and the covariates, and returns a `Design` without strata.
"""
