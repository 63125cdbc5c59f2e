"""Reading and writing whole files, safe from full disks and silent pipes.

writing   reading a file or a pipe; replacing a file by new content, wholly or not at all state
the folder for data between commands; this host's identity limits    errors that mean a limit of the
system
"""
