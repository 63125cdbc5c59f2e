"""Load generators of database servers, run as clients that report what they measured.

- ``load_generator``: what both share, and giving one a server's password
- ``pgbench``, ``sysbench``: ``python -m equipoise_studies.load_generators.pgbench …``
"""
