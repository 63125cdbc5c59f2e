"""From the record of a campaign to its result: a pure function, seeded by the campaign.

In reading order:

result.py       the trials that are analysed, and the whole result document
kind.py         what the result of a kind of campaign has beyond comparisons
comparisons.py  each candidate against its baseline, judged
carry_over.py   whether carry-over could make a difference that was called
ranking.py      which condition is the fastest
levels.py       the variance by level: iterations, trials, layouts, boots, hosts
shape.py        the distribution of one metric, and why it spreads or is unknown; the typical value
                of a condition that stands alone
iterations.py   warm-up and steady state of what a trial repeats
reference.py    a result beside a reference result, how environments differ; pooled
                campaigns
sequences.py    the interval of each candidate after every block
certificate.py  how often this host gives false alarms, and what it can see
warnings.py     the warnings that the numbers of a campaign give
wording.py      sentences of verdicts
redaction.py    records and documents without the values of environment variables
display.py      the same with long names and failures cut, as pages and documents show them
assignments.py  where a command or a line for a shell sets a variable
"""
