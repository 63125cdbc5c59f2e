"""Causes: rules that turn what differs into named causes.

A rule is a generator in the file of its subject. It yields each cause that it finds in what no
earlier rule has claimed. Adding a cause is one such function, one line in ``ranking.RULES``, which
names it, and one row in docs/reference/causes.md.

- ``ranking.py``: all rules in their order, and the causes of a gap ranked by seconds,
  each with what to change in a program
- ``remaining.py``: the difference without what causes have claimed, in seconds of the gap; what
  several rules ask of a difference, and say in a sentence
- ``memory.py``: allocations, page faults, huge pages
- ``system_calls.py``: how files are used, messages, system calls of any kind
- ``processes.py``: forks, many processes, fewer threads, locks, sleeps, waits of any kind
- ``functions.py``: functions of the program, of Python and of BLAS libraries
"""
