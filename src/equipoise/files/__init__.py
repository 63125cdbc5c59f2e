"""Whole files, read and written so that neither a full disk nor a silent pipe does harm.

writing   replaces a file by new content, all of it or nothing
reading   reads a file, or a pipe that somebody writes to
limits    says which limit of the system an error means
"""
