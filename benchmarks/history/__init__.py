"""Histories by the shipped engine on simulated commits, beside the step detection of others.

- ``machines``: nights of a machine that drifts, and the series that a nightly job would have.
- ``engine``: one history by `equipoise.kinds.history.statistics`, at once or night by night.
- ``guarantees``: false discoveries among 300 pairs at the smallest effect, coverage of the curve.
- ``tables``: what is printed, and the claims that are checked; asv and Otava are
  `benchmarks.peers`, each in an environment of its own.
"""
