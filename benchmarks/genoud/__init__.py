"""genoud beside its published means and beside R's package."""
