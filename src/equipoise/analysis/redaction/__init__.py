"""Hiding the values of environment variables in what can be sent.

``assignments``: where a command or a shell's line sets a variable. ``values``: which values are
hidden, and what stands in their place. ``records``: a campaign's record without them.
The ledger keeps every value, because a resumed campaign needs it; only reports leave it out.
"""
