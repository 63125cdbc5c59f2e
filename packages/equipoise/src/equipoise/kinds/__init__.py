"""Kinds of campaign, a folder each: all that is only about one kind (`equipoise.model.kinds`).

bisect     commits between two revisions, of which some made a difference
fleet      many hosts of which one question is asked
functions  Python functions, in fresh processes that run all of them
gate       two revisions of a repository, of which the later one passes or fails
history    revisions side by side, and the commits that changed something
imported   trials that another tool ran

The files of a folder, as far as a kind needs them: ``terms`` of its plan, ``result`` with its
document, ``judge`` and ``analysis``, ``report`` and ``figures``, and its ``command``.
"""
