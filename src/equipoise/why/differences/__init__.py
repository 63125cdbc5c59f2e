"""What differs between the observed runs of two conditions, source by source.

Each quantity is a `Change`; its ``extra`` is what the slower condition has more.
"""
