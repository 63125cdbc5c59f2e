"""Refuse servers that every user of this host could enter.

A plan in a ledger keeps its commands: the studies `database` and `predicts` of the first release
trusted every local user over TCP, and `equipoise resume` would start such a server again.
"""

from __future__ import annotations

import re

from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Server

_TRUSTS_EVERYBODY = re.compile(r"--auth(-host)?=trust\b|--auth-root-authentication-method=normal\b")
_LISTENS_ON_TCP = re.compile(r"listen_addresses=\S|--bind-address\b")


def refuse_open_server(name: str, server: Server) -> None:
    """Refuse PostgreSQL and MariaDB where they listen on TCP and ask nobody for a password.

    Parameters
    ----------
    name
        Name of the condition, for the error.

    Raises
    ------
    ConditionFailed
        It names the option.
    """
    listens = any(_LISTENS_ON_TCP.search(word) for word in server.start)
    options = map(_TRUSTS_EVERYBODY.search, (*(server.install or ()), *server.start))
    option = next(filter(None, options), None)
    if listens and option is not None:
        raise ConditionFailed(
            f"the server of {name} would let every user of this host in by TCP: {option[0]}",
            hint="begin a new campaign; in a study of your own, let it listen on {folder}/socket "
            "(docs/studies.md)",
        )
