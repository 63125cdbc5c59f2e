"""Reading and writing of complete files, and messages about full disks and other limits.

writing: reads a file or a pipe; replaces the content of a file completely or not at all.
state: the folder for data that Equipoise keeps between commands; the identity of this host.
limits: turns errors of the system, such as a full disk, into messages with a hint.
"""
