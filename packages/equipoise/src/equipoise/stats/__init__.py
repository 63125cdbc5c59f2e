"""Statistics: arrays in, results out; knows neither files nor processes.

Verdicts, in reading order:

- ``sequence``: blocks of a candidate and the baseline, and the bets on them.
- ``verdict``: the verdict on each comparison, how many more blocks it would take, and the smallest
  effect that a host can see in a given time.
- ``ranking``: which of several conditions is the fastest.
- ``layouts``: the verdict on layouts in general, from a campaign over some.
- ``intervention``: the fraction of a gap that an intervention explains.
- ``carry_over``: what a trial owes to the condition that ran before it, and whether that
  could make a difference.

Description of a campaign:

- ``describe``: one condition's costs; the ratio of means.
- ``shift``: the ratio quantile by quantile, and whether the minimum misleads; whether most
  of a difference in time is waiting for a processor.
- ``modes``: several distinct times of one program, and one peak as the rival.
- ``companions``: what a mode or an amount goes with.
- ``levels``: the variance by level, and where more measuring helps most.
- ``changes``: change-points of a series, and suspicions in one over commits; ``warm_up``: the
  state of each trial's iterations.
- ``scaling``: costs as a power of the size; ``spread``: whether holding something steadies times.

Between campaigns:

- ``two_samples``: ordinary intervals of two samples, one effect over several campaigns, and the
  ratio that campaigns have in common, whenever each stopped.
- ``sessions``: the same rows measured in two sessions that were not interleaved.

Shared: ``arrays`` (types, ranks, medians, resampling of blocks).
"""
