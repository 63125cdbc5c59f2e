"""Checks out, builds, compares and searches revisions of a git repository.

In reading order:

- ``git.py``: runs git without changes to the user's repository
- ``checkout.py``: checks out revisions, each in a separate working tree
- ``commits.py``: lists the commits between two revisions, and reads the diff of a commit
- ``benchmarks.py``: reads the benchmarks of a gate: commands, a suite file, or a benchmark tool
- ``build_cache.py``: builds revisions, and keeps the builds for later campaigns
- ``link_recording.py``: records how a build links its programs, to link them again
- ``link_layouts.py``: the places of functions and variables in a link, by a seed
- ``relinking.py``: links the programs of revisions again for each block
- ``plan.py``: makes conditions from benchmarks and revisions, for a gate or several commits
- ``pairs.py``: checks out and builds the two revisions of a gate or a verification
- ``link_recording.py``, ``relinking.py``: link the programs of a build again for each block
- ``executed_files.py``: observes which files a benchmark runs, and compares them with a diff
- ``probing.py``: runs benchmarks once, and leaves out those that fail or hang
- ``terms.py``: the part of a plan that all campaigns over commits have
- ``commit_plans.py``: makes the plan of a campaign that runs commands in many commits
- ``judging.py``: runs such a campaign: builds commits, and withdraws commits that fail
"""
