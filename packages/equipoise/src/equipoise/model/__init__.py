"""Frozen data that all rooms share, without input and output.

Every other room may import this room; it imports only `shared`. In reading order:

study.py               a study: workload, factors, metrics, budget, and the places of its keys
kinds.py               kinds of campaign: the interface of a kind, and the register of all kinds
plan.py                a plan: conditions, how they are measured and judged, its kind's terms
revisions.py           revisions and commits of git, as plans and results name them record.py a
campaign as recorded: draws, trials, segments, instrumented runs result.py              the result
document of all kinds, with the findings of a built-in study reference.py           comparison with
the result of another session (``--against``) metrics.py             words for metrics, and ratios
of costs as ratios of values pooled.py              the document of pooled campaigns iterations.py
classified iterations of trials series.py              series of other tools: a value for each
commit, and suspicions why.py                 causes of a gap, and the results of interventions
host.py                a host, its disturbances, and its certificate errors.py
`EquipoiseError` and its exit statuses redaction.py           known tuning variables, and
placeholders for other values quantities.py          intervals, and numbers with their units and
lists of names for readers
"""
