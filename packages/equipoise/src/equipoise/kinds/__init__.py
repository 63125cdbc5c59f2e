"""Kinds of campaign, a folder each, with everything about one kind (`equipoise.model.kinds`).

bisect     find the commits between two revisions that made a difference
explain    test the causes of a gap by interventions
fleet      ask many hosts one question
functions  compare Python functions, in fresh processes that run all of them
gate       pass or fail the later of two revisions of a repository
history    measure revisions side by side, and name the commits with a change
imported   compare trials that another tool ran

The files of a folder, as far as a kind needs them: ``terms`` of its plan, ``result`` with its
document, ``judge`` and ``analysis``, ``report`` and ``figures``, and its ``command``.
"""
