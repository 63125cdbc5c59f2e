"""Reading a study's file.

- ``study.py``: the keys of each table, and the checks beyond types
- ``toml_file.py``: TOML with the line of every key, checked by msgspec
"""
