"""Matching: the effect of a treatment from units that did and units that did not get it."""
