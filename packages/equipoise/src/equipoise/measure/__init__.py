"""Run trials and read their environment; the native launcher does the timing.

Files, in reading order:

- ``trials``: runs one trial: hooks, server, covariates, files.
- ``duet``: runs two trials at once, each on CPUs of its own.
- ``launcher``: sends trials to the native launcher and receives its reports; names of counters.
- ``workload_metrics``: metrics that a workload reports itself.
- ``servers``: servers as workloads.
- ``untimed``: hooks, and untimed runs that examine a command.
- ``builds``: builds of levels and revisions, and of programs in several layouts.
- ``environment``: the facts of the host, and covariates of each trial.
- ``disturbances``: disturbances of measurements on this host.
- ``measurement_lock``: lets only one campaign at a time measure on a host.
- ``scratch``: the private folder of a campaign, and its lock.
- ``leftovers``, ``abandoned``: remove the files and end the processes of killed campaigns.
- ``installation``: native programs and libraries on this host.
"""
