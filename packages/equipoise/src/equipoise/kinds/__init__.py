"""Kinds of campaign, a folder each, with everything about one kind (`equipoise.model.kinds`).

bisect     find the commits between two revisions that made a difference
explain    test the causes of a gap by interventions
fleet      ask many hosts one question
functions  compare Python functions in fresh processes, each of which runs all functions
gate       pass or fail the later of two revisions of a repository
history    measure revisions side by side, and name the commits with a change
imported   compare trials that another tool ran

A folder has those of these files that the kind needs: ``terms`` (additions to its plan), ``result``
(its document), ``judge``, ``analysis``, ``report``, ``figures`` and ``command``.
"""
