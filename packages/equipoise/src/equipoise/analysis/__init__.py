"""Computes the result of a campaign from its record; the same record gives the same result.

In reading order:

- ``result``: selects the trials to analyse, and builds the result document
- ``kind``: what a kind of campaign adds to the result
- ``comparisons``: compares each candidate with its baseline
- ``carry_over``: checks whether the effect of one trial on the next could explain a difference
- ``duet``: describes trials that ran at once
- ``ranking``: ranks the conditions, and finds those that may be the fastest
- ``levels``: splits variance by level: iterations, trials, layouts, boots, hosts
- ``shape``: describes the distribution of a metric, and finds why it spreads or is unknown
- ``iterations``: finds the warm-up and the steady state within a trial
- ``reference``: compares a result with an earlier result, and pools campaigns
- ``sequences``: computes the interval of each candidate after every block
- ``certificate``: measures false alarms of this host, and the effects that it can detect
- ``warnings``, ``wording``: write warnings about a campaign, and sentences of verdicts
- ``assignments``, ``redaction``: hide the values of environment variables
- ``display``: shortens long names and failures for pages
"""
