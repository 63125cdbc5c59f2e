"""Charts of results, made with altair; they know results, not commands.

Nothing heavy is imported here: a chart's module imports altair when it is imported itself.

- ``gallery``: the figures of a result, in the order in which a reader needs them
- ``distributions``: every trial, its density and its median
- ``ratios``: all comparisons; one block by block, and quantile by quantile
- ``time_course``: every trial in the order in which it ran
- ``iterations``: the iterations within each trial
- ``variance_by_level``: the spread that each level adds
- ``scaling``: cost by size
- ``save``: writing a chart as a page or a picture
- ``building``: parts of every chart, with the axis of ratios
- ``quantity``: a metric on an axis: its unit, range and labels
- ``values``: values from a result document, and the laws that costs follow
"""
