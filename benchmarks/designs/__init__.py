"""Designs and weights beside their peers."""
