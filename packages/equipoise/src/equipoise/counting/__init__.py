"""Counts what a command does, in runs whose time nobody uses.

- ``callgrind.py``: instructions, which valgrind's callgrind simulates
- ``allocations.py``: allocations and their bytes, which a preloaded library counts
- ``run.py``: runs a command with these counters, and reports to ``EQUIPOISE_METRICS``
"""
