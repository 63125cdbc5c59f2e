"""Evidence: what instrumented runs observe. Their times never count for a verdict.

- ``sources.py``: the table of sources, and the `EvidenceSet` that they give of a pair; a new source
  is one entry and one field there
- ``collect.py``: runs both conditions of a gap under each source, in random order
- ``process.py``: how a source starts a command and reads the document that it leaves
- ``stacks.py``: sampled stacks: the sources ``profile``, ``page_faults`` and ``waits``
- ``system_calls.py``, ``allocations.py``, ``instructions.py``: the sources of these names
"""
