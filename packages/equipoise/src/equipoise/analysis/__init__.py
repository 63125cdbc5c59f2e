"""From the record of a campaign to its result: a pure function, seeded by the campaign.

In reading order:

result.py       the trials that are analysed, and the whole result document kind.py additions of a
kind of campaign to the result of comparisons comparisons.py  each candidate against its baseline,
judged carry_over.py   whether carry-over could explain a difference that was called ranking.py
which condition is the fastest levels.py       the variance by level: iterations, trials, layouts,
boots, hosts shape.py        the distribution of one metric, and why it spreads or is unknown; the
typical value of a condition without a comparison iterations.py   warm-up and steady state of the
iterations within a trial reference.py    a result compared with a reference result, differences of
environments; pooled campaigns sequences.py    the interval of each candidate after every block
certificate.py  how often this host gives false alarms, and which effects it can detect warnings.py
the warnings that the numbers of a campaign give wording.py      sentences of verdicts redaction.py
records and documents without the values of environment variables display.py      records and
documents with long names and failures cut, for pages and documents assignments.py  assignments of
variables in commands and lines for a shell
"""
