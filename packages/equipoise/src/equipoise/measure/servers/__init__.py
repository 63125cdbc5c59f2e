"""Servers as workloads: each runs in a folder of its own, and its client is timed.

A launcher starts each server, so that it is accounted for like a trial, and so that it ends with
all its descendants when Equipoise does, however that happens. The commands around a server (to make
its data, to ask whether it is ready, to stop it) go through a launcher for the same reason.

Files, in reading order:

- ``servers``: starts a server for a trial, with its initial data, waits for it, and stops it.
- ``processes``: folder, port, password and user of one life, closed to other users; what its
  processes consumed, and whether its settings took effect.
"""

from equipoise.measure.servers.servers import Servers, Service

__all__ = ["Servers", "Service"]
