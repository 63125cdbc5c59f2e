"""Fleets of hosts with known truth, judged by the shipped statistics.

- ``fleets``: simulated fleets: effects of hosts, blocks, hosts that leave.
- ``coverage``: what each interval of a fleet covers, and how wide it is.
- ``alarms``: evidence that a host differs, and hosts that are otherwise.
- ``leaving``: hosts that come, go, and leave because they are slow.
- ``tables``: what ``python -m benchmarks.fleet`` prints.
"""
