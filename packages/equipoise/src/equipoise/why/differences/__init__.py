"""Differences between the observed runs of two conditions, source by source.

Each quantity is a `Change`; its ``extra`` is the slower condition's value minus the faster one's.

- ``changes.py``: the data (`Difference` and its parts), and the computation of a `Change`
- ``compare.py``: `difference_between`, which compares all sources, the trials and the settings
- ``stacks.py``: processor time, waits and page faults by function; pictures of profiles
- ``locks.py``: the waits for each lock, the functions of locks, and their callers
- ``allocations.py``: allocated blocks by size, lifetime and function
- ``wording.py``: the sentence that says where the extra time goes
"""
