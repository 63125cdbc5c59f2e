"""Designs beside those of other packages, in one run."""
