"""Matching beside R's Matching and MatchIt and scikit-learn's neighbour search, in one run."""
