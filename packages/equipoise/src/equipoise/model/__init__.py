"""Frozen data that all rooms share, without input and output.

Every other room may import this room; it imports only `shared`. In reading order:

- ``study``: a study: workload, factors, metrics and budget, with the places of its keys in a file.
- ``kinds``: kinds of campaign: the interface of a kind, and the register of all kinds.
- ``plan``: a plan: conditions, how they are measured and judged, and the terms of its kind.
- ``revisions``: revisions and commits of git, as plans and results name them.
- ``record``: a campaign as recorded: draws, trials, segments, instrumented runs.
- ``result``: the result document, with the findings of a built-in study.
- ``reference``: a comparison with the result of another session (``--against``).
- ``metrics``: words for sentences about a metric.
- ``inverse_ratios``: ratios of costs as ratios of values, if more of a metric is better.
- ``pooled``: the document of pooled campaigns.
- ``iterations``: the iterations of trials by class.
- ``series``: series of other tools: a value for each commit, and suspicions.
- ``why``: causes of a gap, and the results of interventions.
- ``host``: a host, its disturbances, and its certificate.
- ``packages``: other packages that add kinds, studies and programs.
- ``errors``: `EquipoiseError` and the exit statuses.
- ``redaction``: known tuning variables, and placeholders for the values of all others.
- ``garbage_collection``: a pause of Python's garbage collector.
- ``quantities``: intervals, and numbers with units and lists of names for readers.
"""
