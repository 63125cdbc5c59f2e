"""What instrumented runs observed, one source a file.

Each source has ``wrap``, how the observed process is started, and ``read``, what it left in a
folder. No source is used in a run that is timed for a verdict (rule 4). docs/evidence.md says what
each one sees and what it cannot, and what observing costs.
"""
