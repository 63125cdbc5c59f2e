"""Charts of results, one file each; they know results, not commands.

Nothing heavy is imported here: a chart's module imports altair, and whoever wants no chart
imports none of them.
"""
