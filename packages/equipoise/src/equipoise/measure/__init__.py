"""Running trials and reading their environment; the launcher does the timing.

Files, in reading order:

- ``trials``: runs one trial: hooks, server, covariates, files.
- ``launcher``: communication with the native launcher, and the counters that it has.
- ``workload_metrics``: metrics that a workload reports itself.
- ``servers``: servers as workloads.
- ``untimed``: hooks, and untimed runs that examine a command.
- ``builds``: builds of levels and revisions, and programs in several layouts.
- ``environment``: the facts of the host, and covariates of each trial.
- ``disturbances``: disturbances of measurements on this host.
- ``measurement_lock``: one campaign at a time on a host.
- ``scratch``: the private folder of a campaign, and its lock; ``leftovers``: clears away what
  killed campaigns left; ``abandoned``: ends their processes.
- ``installation``: native programs and libraries on this host; ``probes``: the rows of ``equipoise
  os`` that this host can measure.
"""
