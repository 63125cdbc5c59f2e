"""Weights: weight the rows so that the arms have the same covariates, without choosing rows.

Every function takes the treatment and the covariates, and returns a `Design` without strata.

- ``scores``: the probability of each arm for each row
- ``target``: the rows whose covariates the weighted arms reproduce, and the result
- ``inverse_probability``: inverse probability weights and overlap weights
- ``newton``: the minimum of a smooth convex function
- ``entropy_balance``: the least change of the weights that makes the means equal
- ``covariate_balancing``: the propensity score that makes the means equal
- ``energy_balance``: the weights of the smallest energy distance between the arms
"""
