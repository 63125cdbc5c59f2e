"""Benchmarks of designs, weights and effects, next to their peers."""
