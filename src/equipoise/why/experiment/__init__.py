"""A campaign that tests explanations: its plan, its judge, and what came of it.

A block holds the two conditions of the gap and, for one intervention that the coin draws, the same
two with it; where the intervention has a sham, also with that (verdict.md §7).
"""
