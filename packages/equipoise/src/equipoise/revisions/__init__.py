"""Revisions of a git repository: checked out, built, compared and searched.

In reading order:

- ``git.py``: git commands in the user's repository that do not write into it
- ``checkout.py``: revisions in separate working trees
- ``commits.py``: the commits between two revisions or of a history, and the diff of a commit
- ``benchmarks.py``: the benchmarks of a gate: commands, a suite file, or a benchmark tool
- ``build_cache.py``: builds that are kept for the next gate or bisection, and the key of each build
- ``plan.py``: revisions as conditions; the command line that finds the commit of a change
- ``terms.py``: the part of a plan that all campaigns over commits have
- ``commit_plans.py``: commits as conditions: their builds, and the plan of a campaign over them
- ``judging.py``: campaigns over commits: builds before a block, commits left out, and their judge
"""
