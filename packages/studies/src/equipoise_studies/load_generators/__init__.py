"""Load generators of database servers, run as clients that report their measurements.

- ``load_generator``: the common part, and the transfer of a server's password
- ``pgbench``, ``sysbench``: ``python -m equipoise_studies.load_generators.pgbench …``
"""
