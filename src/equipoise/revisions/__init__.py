"""Revisions of a git repository: checked out, built and compared.

checkout     two revisions in working trees of their own, in a private folder
benchmarks   what a gate runs: commands, a suite file, or a language's benchmark tool
plan         from a request to two built revisions, and to the plan that compares them
"""
