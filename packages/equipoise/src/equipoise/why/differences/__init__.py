"""Differences between the observed runs of two conditions, source by source.

Each quantity is a `Change`; its ``extra`` is the slower condition's value minus the faster one's.

- ``changes.py``: the data (`Difference` and its parts), and the computation of a `Change`
- ``compare.py``: `difference_between`, which compares all sources, the trials and the settings
- ``stacks.py``: time on a processor, waits and page faults, by function and kernel entry point;
  the flame graph and the profile for Firefox
- ``locks.py``: the waits for each lock, the functions of locks, and their callers
- ``allocations.py``: allocated blocks by size, lifetime and function
- ``wording.py``: the sentence that says where the extra time goes
"""
