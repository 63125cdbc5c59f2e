"""Interventions: changes made on purpose to both conditions, to test a cause.

A new intervention needs an entry in the file of its subject, and a row in docs/reference/causes.md.

- ``catalogue.py``: all interventions, the interventions for given causes, the user's own
- ``intervention.py``: `Intervention`; `Case`, a gap with its causes; helpers to change conditions
- ``memory.py``: allocators, glibc's settings (tunables), huge pages, memory given back
- ``files.py``: buffers, syncs, standard output, the page cache
- ``runtime.py``: threads, CPUs, sleeps, hash seeds, the size of the environment, addresses
- ``blas.py``: another BLAS library, or another type of processor that a library computes for
"""
