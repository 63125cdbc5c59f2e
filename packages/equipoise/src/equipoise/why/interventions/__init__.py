"""Interventions: changes made on purpose to both conditions, to test a cause.

An intervention says what it changes, and which causes that tests. Adding one is one entry in the
file of its subject, and one row in docs/reference/causes.md, which says how its effect is proved.
Most are one
call of a helper in ``intervention.py``: a preloaded library and its sham, or glibc tunables.

- ``catalogue.py``: all interventions, those that fit the causes that were found, the user's own
- ``intervention.py``: `Intervention`, the case that it is offered for, helpers for common forms;
  conditions with other variables, preloaded libraries, process settings or hooks
- ``memory.py``: allocators, glibc's tunables, huge pages, memory given back
- ``files.py``: buffers, syncs, standard output, the page cache
- ``runtime.py``: threads, CPUs, sleeps; hash seeds, the size of the environment, addresses
- ``blas.py``: another BLAS library, or another processor that a library is set to
"""
