"""Revisions of a git repository: checked out, built, compared and searched.

git          git commands in the user's repository that do not write into it
checkout     revisions in separate working trees
commits      the commits between two revisions or of a history, and the diff of a commit
benchmarks   the benchmarks of a gate: commands, a suite file, or a language's benchmark tool
build_cache  builds that are kept for the next gate or bisection, and the key of each build
plan         revisions as conditions; the command line that searches the commits between two
terms        the terms of campaigns whose conditions are commits
commit_plans commits as conditions: their builds, and the plan of a campaign over them
judging      campaigns over commits: builds before a block, commits left out, and their judge
"""
