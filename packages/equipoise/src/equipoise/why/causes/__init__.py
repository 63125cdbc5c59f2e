"""Causes: rules that turn differences into named causes.

A rule is a generator of causes. It finds them in the time that no earlier rule has claimed. A new
cause needs a rule, a line in ``ranking.RULES``, and a row in docs/reference/causes.md.

- ``ranking.py``: runs all rules in their order; ranks the causes by seconds
- ``unclaimed.py``: the time that no cause has claimed yet; helpers of the rules
- ``memory.py``: allocations, page faults, huge pages
- ``system_calls.py``: how files are used, messages, system calls of any kind
- ``processes.py``: forks, many processes, fewer threads, locks, sleeps, waits of any kind
- ``functions.py``: functions of the program, of Python and of BLAS libraries
"""
