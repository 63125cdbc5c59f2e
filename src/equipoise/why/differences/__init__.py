"""Differences: what differs between the observed runs of two conditions, source by source.

Each quantity is a `Change`; its ``extra`` is what the slower condition has more.

- ``changes.py``: the data (`Difference` and its parts), and how a `Change` is computed
- ``compare.py``: `difference_between`, which puts all sources together, and the settings that the
  two conditions declare differently
- ``trials.py``: the gap and its parts, by the accounts of the campaign's own trials
- ``stacks.py``: time on a processor, waits and page faults, by function and kernel entry point
- ``system_calls.py``: system calls, files, locks, processes
- ``allocations.py``: allocated blocks by size, lifetime and function
- ``wording.py``: the sentence that says where the extra time goes
- ``pictures.py``: the flame graph and the profile for Firefox
"""
