"""Servers as workloads: each runs in its own folder, and its client is timed.

A launcher starts each server and reports its consumption. The launcher ends the server and all its
descendants when Equipoise ends, even if Equipoise is killed. Other commands create a server's data,
check whether the server is ready, or stop the server. They also run through a launcher.

Files, in reading order:

- ``servers``: starts a server for a trial, with its initial data, waits for it, and stops it.
- ``processes``: folder, port, password and user of a server; consumption and settings of its
  processes.
"""

from equipoise.measure.servers.servers import Servers, Service

__all__ = ["Servers", "Service"]
