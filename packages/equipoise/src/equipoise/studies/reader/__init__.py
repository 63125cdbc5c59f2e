"""Reading a study's file.

study.py      the forms of its tables, and the checks beyond types toml_file.py  TOML with the line
of every key, checked by msgspec
"""
