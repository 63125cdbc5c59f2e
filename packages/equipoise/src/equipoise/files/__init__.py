"""Whole files, read and written so that neither a full disk nor a silent pipe does harm.

writing   reads a file or a pipe; replaces a file by new content, all of it or nothing
state     the folder that keeps what is needed from one command to the next; this host's identity
limits    says which limit of the system an error means
"""
