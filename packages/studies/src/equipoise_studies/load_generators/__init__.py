"""Load generators of database servers, run as clients that report their measurements.

- ``load_generator``: run a load generator, report its results, and pass a server's password
- ``pgbench``, ``sysbench``: ``python -m equipoise_studies.load_generators.pgbench …``
"""
