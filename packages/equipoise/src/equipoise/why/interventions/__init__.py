"""Interventions: changes made on purpose to both conditions, to test a cause.

A new intervention needs an entry in the file of its subject, and a row in docs/reference/causes.md.

- ``catalogue.py``: lists the interventions for a gap; makes the interventions of the user
- ``intervention.py``: `Intervention`; `Case`, a gap with its causes; functions that change conditio
- ``memory.py``: allocators, glibc's settings (tunables), huge pages, madvise
- ``files.py``: buffers, syncs, standard output, the page cache
- ``runtime.py``: threads, CPUs, sleeps, hash seeds, the size of the environment, addresses
- ``blas.py``: another BLAS library, or another type of processor that a library computes for
"""
