"""Designs beside those of R and of other Python packages, in one run each."""
