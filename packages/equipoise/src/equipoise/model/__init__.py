"""What Equipoise talks about: frozen data, no input and no output.

Every other room may import this one; this one imports only `shared`. In reading order:

study.py               a study: workload, factors, metrics, budget, and where its keys stand
kinds.py               kinds of campaign: what one provides, and the register of all
plan.py                a plan: conditions, how they are measured and judged, its kind's terms
revisions.py           revisions and commits of git, as plans and results name them
record.py              a campaign as recorded: draws, trials, segments, instrumented runs
result.py              the result document of all kinds, with the findings of a built-in study
reference.py           a result held beside that of another session (``--against``)
metrics.py             how a metric reads, and ratios of costs as ratios of its values
pooled.py              the document of several campaigns that are pooled
iterations.py          the iterations of trials, classed
series.py              series of other tools: a value for each commit, and suspicions
why.py                 causes of a gap, and what interventions showed
host.py                a host, what disturbs it, and its certificate
errors.py              `EquipoiseError` and its exit statuses
redaction.py           known tuning variables, and placeholders for other values
quantities.py          intervals, and numbers with their units and lists of names for readers
"""
