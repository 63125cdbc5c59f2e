"""Statistics: functions from arrays to results, without files and processes.

Verdicts, in reading order:

- ``sequence``: blocks of a candidate and the baseline, and the bets on them.
- ``resolution``: the smallest step of a metric, and the differences that count as ties.
- ``verdict``: verdicts on comparisons, forecasts, and the smallest effect that a campaign detects.
- ``slow_runs``: whether slow runs forbid ``equivalent``.
- ``constancy``: whether one ratio describes a comparison.
- ``ranking``: which of several conditions is the fastest.
- ``layouts``: the verdict on memory layouts in general, from a campaign over some of them.
- ``intervention``: the fraction of a gap that an intervention explains.
- ``carry_over``: the effect of a trial on the next trial.

Description of a campaign:

- ``describe``: one condition's costs; the ratio of means.
- ``shift``: the shift function, which is the ratio of each quantile; whether the minimum misleads.
- ``modes``: several distinct times of one program.
- ``associations``: covariates, such as the CPU, that are associated with a mode or with a cost.
- ``levels``: the variance by level, and where more measuring helps most.
- ``changes``: change-points of a series, and suspicions in a series over commits.
- ``warm_up``: whether the iterations of a trial are flat, warm up or slow down.
- ``scaling``: costs as a power of the size.
- ``duet``: whether trials that run at once disturb each other, and are sharper.
- ``spread``: whether times spread less if a source of chance is held.

Between campaigns:

- ``two_samples``: ordinary intervals of two samples, and effects over several campaigns.
- ``hosts``: one comparison on several hosts: each host, their mean, and hosts to come.
- ``sessions``: the same rows measured in two sessions that were not interleaved.

Shared: ``arrays`` (types, ranks, medians, resampling of blocks).
"""
