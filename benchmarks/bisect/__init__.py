"""How often a bisection names the right commit, and what it costs: ``python -m benchmarks.bisect``.

- ``noise``: log times of trials with known faults of the machine
- ``engine``: the shipped engine on simulated commits
- ``rules``: what others do, with as many trials
- ``cells``: what is simulated, and the figures of an independent simulation
- ``tables``: the tables and the claims
- ``repositories``: repositories of 64 commits with planted steps
- ``live``: real searches in them, beside `git bisect run`: ``python -m benchmarks.bisect.live``
"""
