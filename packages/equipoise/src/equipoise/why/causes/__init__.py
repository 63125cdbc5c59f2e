"""Causes: rules that turn differences into named causes.

A rule is a generator in the file of its subject. It yields each cause that it finds in the time
that no earlier rule has claimed. A new cause needs one such function, one line in
``ranking.RULES``, which names it, and one row in docs/reference/causes.md.

- ``ranking.py``: all rules in their order; the causes of a gap ranked by seconds, each with a
  remedy
- ``unclaimed.py``: the part of the difference that no cause has claimed, in seconds of the gap;
  helpers of several rules
- ``memory.py``: allocations, page faults, huge pages
- ``system_calls.py``: how files are used, messages, system calls of any kind
- ``processes.py``: forks, many processes, fewer threads, locks, sleeps, waits of any kind
- ``functions.py``: functions of the program, of Python and of BLAS libraries
"""
