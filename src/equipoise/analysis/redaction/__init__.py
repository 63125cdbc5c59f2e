"""Records and documents without the values of environment variables.

The ledger keeps every value, because a resumed campaign needs it; only reports leave values out.
In reading order:

documents.py  whole records, plans and result documents without hidden values; which values these
              are, and the placeholder of each
commands.py   where a command, a shell line or a gate sets a variable
"""
