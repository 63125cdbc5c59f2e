"""Load generators of database servers: clients that report their measurements.

- ``load_generator``: runs a load generator, reports its results, and passes a server's password
- ``pgbench``, ``sysbench``: ``python -m equipoise_studies.load_generators.pgbench …``
"""
