"""Designs and weights beside the packages of R and Python that make them."""
