"""The benchmark tools, a file each. Each file has a ``TOOL``, which nothing else must register."""
