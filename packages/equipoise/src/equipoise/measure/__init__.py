"""Running trials and reading their surroundings; the timing itself is the launcher's.

Files, in reading order:

- ``trials``: runs one trial: hooks, server, covariates, files.
- ``launcher``: speaks with the native launcher, and names what it can count on request.
- ``workload_metrics``: what a workload reports itself.
- ``servers``: servers as workloads.
- ``untimed``: hooks, and runs that only show what a command does.
- ``builds``: builds of levels and revisions, and programs in several layouts.
- ``environment``: the facts of the host, and covariates beside each trial.
- ``disturbances``: what disturbs measurements on this host.
- ``measurement_lock``: one campaign at a time on a host.
- ``scratch``: the private folder of a campaign, and its lock; ``leftovers``: what killed
  campaigns left; ``abandoned``: ends their processes.
- ``installation``: native programs and libraries on this host; ``probes``: the rows of
  ``equipoise os`` that it can measure.
"""
