"""Servers as workloads: each in a folder of its own, with a client that is timed.

A server is started by a launcher of its own, so that it is accounted for like a trial, and so
that it ends with all of its descendants when Equipoise does, however that happens. What is run
around it (to make its data, to ask whether it is ready, to stop it) goes through a launcher too,
for the same reason.
"""

from equipoise.measure.servers.hiring import Servers
from equipoise.measure.servers.service import Service

__all__ = ["Servers", "Service"]
