"""How costs grow with hosts, trials and ledgers: exponents from at least four sizes.

- ``growth``: sizes, what they cost, and the exponent.
- ``analysis``: time of a fleet's statistics by hosts and by blocks.
- ``ledgers``: size of a ledger by trials; time of a merge by trials and by ledgers.
- ``messages``: what a coordinator asks, and what Dask's scheduler handles for it.
- ``pages``: size of a fleet's report by hosts.
"""
