"""Changes made on purpose to test an explanation, one file each or one family a file.

A file has ``offered``, which gives the interventions that it knows for a case: a pair of
conditions, where they run, and what may cause the gap between them.
`equipoise.why.interventions.catalogue` lists the files.
"""
