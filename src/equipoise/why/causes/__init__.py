"""Rules that turn what differs into named causes, one file each.

A file has ``CAUSE``, its stable id; ``WORDS``, what it means, for the docs; and ``find``, which
gives what it finds in what no other rule has claimed. `equipoise.why.causes.registry` lists
them, the most specific first.
"""
