"""From the record of a campaign to its result: a pure function, seeded by the campaign.

In reading order:

result.py       the trials that are analysed, and the whole result document
comparisons.py  each candidate against its baseline, judged
carry_over.py   whether carry-over could make a difference that was called
ranking.py      which condition is the fastest
levels.py       the variance by level: iterations, trials, layouts, boots, hosts
shape.py        the distribution of one metric, and why it spreads or is unknown; the typical value
                of a condition that stands alone
iterations.py   warm-up and steady state of what a trial repeats
imports.py      runs of other tools: intervals without a verdict
pooling.py      several campaigns of the same commands
fleet.py        the hosts of a fleet, and what holds over them; fleet_answers.py words the answers
reference.py    a result beside a reference result, and how their environments differ
sequences.py    the interval of each candidate after every block
gate.py         whether a gate lets a revision through
bisection.py    which commits made a difference
history.py      what changed over the commits, and suspicions of imported series
certificate.py  how often this host gives false alarms, and what it can see
warnings.py     the warnings that the numbers of a campaign give
wording.py      sentences of verdicts
redaction.py    records and documents without the values of environment variables
assignments.py  where a command, a shell line or a gate sets a variable
"""
