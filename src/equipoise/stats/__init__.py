"""Arrays in, results out: verdicts, distributions, carry-over.

Knows neither files nor processes. How each number is computed: docs/statistics.md.
"""
