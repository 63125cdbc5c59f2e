"""Charts of results, made with altair.

The import of altair takes long, so import a module of this folder only where you draw.

- ``gallery``: all figures of a result, in the order in which a reader needs them
- ``distributions``: every trial with the density and the median
- ``ratios``: all comparisons; one comparison by block, and by quantile
- ``time_course``: every trial in the order in which it ran
- ``iterations``: the iterations within each trial
- ``variance_by_level``: the spread that each level adds, such as trials or layouts
- ``scaling``: cost by size
- ``save``: writes a chart as a page or a picture
- ``building``: parts that all charts share, such as the axis of ratios
- ``quantity``: a metric on an axis: its unit, range and labels
- ``values``: values from a result, and laws fitted to costs
"""
