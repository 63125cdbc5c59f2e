"""Servers as workloads: each runs in its own folder, and its client is timed.

A launcher starts each server, so that it is accounted for like a trial, and ends with all its
descendants when Equipoise ends, however that happens. For the same reason the commands around a
server (which create its data, check whether it is ready, and stop it) run through a launcher.

Files, in reading order:

- ``servers``: starts a server for a trial, with its initial data, waits for it, and stops it.
- ``processes``: the folder, port, password and user of one life of a server; the consumption of
  its processes, and the check that its settings took effect.
"""

from equipoise.measure.servers.servers import Servers, Service

__all__ = ["Servers", "Service"]
