"""Studies: how their files are read, the levels that have names, and the built-in ones.

A built-in study is a folder here with a ``study.toml``; a file of named levels is registered in
``registry.py``.
"""
