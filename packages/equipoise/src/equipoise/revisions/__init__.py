"""Revisions of a git repository: checked out, built, compared and searched.

git          running git in the user's repository, without writing into it
checkout     revisions in working trees of their own
commits      the commits between two revisions or of a history, and what a commit changed
benchmarks   what a gate runs: commands, a suite file, or a language's benchmark tool
build_cache  builds that are kept for the next gate or bisection, and the key of each
plan         revisions as conditions, and the line that searches commits between two
terms        the terms of campaigns whose conditions are commits
commit_plans commits as conditions: their builds, and the plan of a campaign over them
judging      campaigns over commits: builds before a block, commits left out, and their judge
"""
