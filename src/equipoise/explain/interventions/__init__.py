"""Changes made on purpose to test an explanation, one file each.

A file has ``offered``, which gives the interventions that it knows for a pair of conditions.
`equipoise.explain.interventions.catalogue` lists the files.
"""
