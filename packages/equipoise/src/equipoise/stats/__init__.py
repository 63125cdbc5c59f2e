"""Statistics: functions from arrays to results, without files and processes.

Verdicts, in reading order:

- ``sequence``: blocks of a candidate and the baseline, and the bets on them.
- ``verdict``: the verdict on each comparison, how many more blocks it would take, and the smallest
  effect that a host can see in a given time.
- ``ranking``: which of several conditions is the fastest.
- ``layouts``: the verdict on layouts in general, from a campaign over some.
- ``intervention``: the fraction of a gap that an intervention explains.
- ``carry_over``: the effect of a trial's predecessor on the trial, and whether it can explain a
  difference.

Description of a campaign:

- ``describe``: one condition's costs; the ratio of means.
- ``shift``: the ratio quantile by quantile, and whether the minimum misleads; whether most
  of a difference in time is waiting for a processor.
- ``modes``: several distinct times of one program, and one peak as the rival.
- ``companions``: covariates that are associated with a mode or an amount.
- ``levels``: the variance by level, and where more measuring helps most.
- ``changes``: change-points of a series, and suspicions in one over commits; ``warm_up``: the
  state of each trial's iterations.
- ``scaling``: costs as a power of the size; ``spread``: whether holding a source of chance steadies
  times.

Between campaigns:

- ``two_samples``: ordinary intervals of two samples, the pooled effect of several campaigns, and
  the ratio that campaigns have in common, whenever each stopped.
- ``sessions``: the same rows measured in two sessions that were not interleaved.

Shared: ``arrays`` (types, ranks, medians, resampling of blocks).
"""
