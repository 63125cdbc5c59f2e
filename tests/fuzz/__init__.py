"""Random hostile input for everything that Equipoise reads, and the finds that were mended.

``python -m tests.fuzz --help`` runs it; the files in reading order:

case        a case, its outcome, and a find as a file of the corpus
mutators    changes to bytes, lines and JSON
targets/    what is fuzzed, one file each
guard       the limits of a case: processor time, memory, files, processes
judge       one case is run and its outcome judged
worker      the process that runs cases
supervisor  starts workers, kills those that hang, collects outcomes
"""
