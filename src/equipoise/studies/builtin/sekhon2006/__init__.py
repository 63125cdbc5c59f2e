"""Sekhon's article of 2006, run again."""
