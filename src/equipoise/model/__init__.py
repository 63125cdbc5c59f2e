"""What Equipoise talks about: frozen data, no input and no output.

Every other room may import this one; this one imports nothing of ours. In reading order:

study.py               a study: workload, factors, metrics, budget, and where its keys stand
plan.py                a plan: conditions, how they are measured and judged; gates, bisections
record.py              a campaign as recorded: draws, trials, segments, instrumented runs
result.py              the result document
pooled.py              the document of several campaigns that are pooled
bisection.py           the result of a bisection: culprits, the commits that are left, the gap
history.py             the result of a history: the curve over the commits, and the changes
adjustment.py          what costs may be adjusted by, and what an adjustment did
functions.py           terms of a campaign of Python functions
why.py                 causes of a gap, and what interventions showed
observation_result.py  the result of ``equipoise observe``
findings.py            tables and paragraphs of a built-in study
host.py                what disturbs a host, and its certificate
primitives.py          the rows of ``equipoise os``
errors.py              `EquipoiseError` and its exit statuses
redaction.py           known tuning variables, and placeholders for other values
quantities.py          numbers with their units and lists of names, as people read them
interval.py            an interval as the result document has it
safe_text.py           untrusted text on a terminal and in CSV
extras.py              packages and charts that are imported when they are used
bulk.py                reading very many records fast
"""
