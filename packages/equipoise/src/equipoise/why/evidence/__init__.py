"""Evidence: observations of runs under sources, which are tools such as a profiler.

The times of these runs never count for a verdict.

- ``sources.py``: the table of sources, and the `EvidenceSet` of a pair of conditions; a new source
  is one entry and one field there
- ``collect.py``: runs both conditions of a gap under each source, in random order
- ``observer.py``: the native observer: the source ``system_calls``, and sampled stacks: the sources
  ``profile``, ``page_faults`` and ``waits``
- ``allocations.py``, ``instructions.py``: the sources of these names
"""
