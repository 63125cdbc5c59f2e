"""One campaign from plan to result: composes design, measure, ledger and stats.

The command line and the Python interface both call this room.
"""
