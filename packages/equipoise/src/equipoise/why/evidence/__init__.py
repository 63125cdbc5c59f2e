"""Evidence: observations of runs by sources. A source is a tool, such as a profiler.

The times of these runs never count for a verdict.

- ``sources.py``: the table of sources; add a new source there
- ``collect.py``: runs both conditions of a gap under each source, in random order
- ``observer.py``: the sources ``system_calls``, ``profile``, ``page_faults`` and ``waits``
- ``allocations.py``, ``instructions.py``: the sources of these names
"""
