"""What Equipoise talks about: frozen data, no input and no output.

Every other room may import this one; this one imports only `shared`. In reading order:

study.py               a study: workload, factors, metrics, budget, and where its keys stand
plan.py                a plan: conditions, how they are measured and judged; gates, bisections
record.py              a campaign as recorded: draws, trials, segments, instrumented runs
result.py              the result document, with the findings of a built-in study
reference.py           a result held beside that of another session (``--against``)
metrics.py             how a metric reads, and ratios of costs as ratios of its values
pooled.py              the document of several campaigns that are pooled
bisection.py           the result of a bisection: culprits, the commits that are left, the gap
history.py             the result of a history: the curve and the changes; series of other tools
fleet.py               a fleet: its hosts and terms, and the result over them
why.py                 causes of a gap, planned interventions, and what they showed
host.py                what disturbs a host, and its certificate
primitives.py          the rows of ``equipoise os``
errors.py              `EquipoiseError` and its exit statuses
redaction.py           known tuning variables, and placeholders for other values
quantities.py          intervals, and numbers with their units and lists of names for readers
"""
