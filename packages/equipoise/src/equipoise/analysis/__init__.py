"""From the record of a campaign to its result: the same record always gives the same result.

In reading order:

- ``result``: selects the trials to analyse, and builds the result document
- ``kind``: what a kind of campaign adds to the result
- ``comparisons``: compares each candidate with its baseline
- ``carry_over``: whether the effect of one trial on the next could explain a difference
- ``ranking``: which condition may be the fastest
- ``levels``: variance by level: iterations, trials, layouts, boots, hosts
- ``shape``: the distribution of a metric, and why it spreads or is unknown
- ``iterations``: warm-up and steady state within a trial
- ``reference``: a comparison with an earlier result; pooled campaigns
- ``sequences``: the interval of each candidate after every block
- ``certificate``: false alarms of this host, and the effects that it can detect
- ``warnings``, ``wording``: warnings about a campaign; sentences of verdicts
- ``assignments``, ``redaction``: hide the values of environment variables
- ``display``: shortens long names and failures for pages
"""
