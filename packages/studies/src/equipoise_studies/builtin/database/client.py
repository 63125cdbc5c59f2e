"""Run the client of a server of this study: a load generator with its options.

Usage: ``python client.py mariadb --work=read_only …``.
"""

from __future__ import annotations

import argparse
import os
import pwd
import sys
from collections.abc import Callable, Sequence

from equipoise_studies.load_generators import pgbench, sysbench
from equipoise_studies.load_generators.load_generator import PASSWORD_OPTION

LOOPBACK = "127.0.0.1"
TCP_ACCOUNT = "sysbench"
"""Account of MariaDB that has a password, and rights only on the data of the benchmark."""
ROLE = "pgbench"
"""Role of PostgreSQL that owns the data of the benchmark, and is not a superuser."""
OPEN_RATES_PER_S = {
    ("mariadb", "read_only"): 100,
    ("mariadb", "read_write"): 50,
    ("postgresql", "read_only"): 500,
    ("postgresql", "read_write"): 200,
}
"""Transactions per second, well below the rate of any server in docs/evidence/validity.md."""
PGBENCH_SCRIPTS = {"read_only": "select-only", "read_write": "simple-update"}
"""Built-in scripts of pgbench, by the work that the clients request."""


def mariadb_command(options: argparse.Namespace) -> list[str]:
    """Return the arguments of sysbench.

    Through the Unix socket, the server accepts the user of the client's process.
    """
    address = (
        [f"--mysql-user={_own_account()}", f"--mysql-socket={options.folder}/socket"]
        if options.transport == "unix"
        else [
            f"--mysql-user={TCP_ACCOUNT}",
            f"--mysql-host={LOOPBACK}",
            f"--mysql-port={options.port}",
            f"{PASSWORD_OPTION}{options.password_file}",
        ]
    )
    return [
        "--db-driver=mysql",
        "--mysql-db=sbtest",
        *address,
        "--tables=1",
        "--table-size=10000",
        f"--threads={options.threads}",
        f"--time={options.seconds}",
        *([f"--rate={_rate(options)}"] if options.load == "open" else []),
        f"oltp_{options.work}",
        "run",
    ]


def postgresql_command(options: argparse.Namespace) -> list[str]:
    """Return the arguments of pgbench."""
    address = (
        [f"--host={options.folder}"]
        if options.transport == "unix"
        else [f"--host={LOOPBACK}", f"{PASSWORD_OPTION}{options.password_file}"]
    )
    return [
        *address,
        f"--port={options.port}",
        f"--username={ROLE}",
        "--no-vacuum",
        "--protocol=prepared",
        f"--builtin={PGBENCH_SCRIPTS[options.work]}",
        f"--client={options.threads}",
        f"--jobs={min(options.threads, len(os.sched_getaffinity(0)))}",
        f"--time={options.seconds}",
        *([f"--rate={_rate(options)}"] if options.load == "open" else []),
        "postgres",
    ]


def _own_account() -> str:
    user_id = os.geteuid()
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        raise SystemExit(f"user {user_id} has no account, which MariaDB needs") from None


def _rate(options: argparse.Namespace) -> int:
    return OPEN_RATES_PER_S[options.server, options.work]


CLIENTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "mariadb": lambda options: sysbench.run(mariadb_command(options)),
    "postgresql": lambda options: pgbench.run(postgresql_command(options)),
}
"""Function that runs the client, by server."""


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("server", choices=list(CLIENTS))
    parser.add_argument("--work", choices=list(PGBENCH_SCRIPTS), required=True)
    parser.add_argument("--load", choices=["closed", "open"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--password-file", required=True)
    parser.add_argument("--transport", choices=["unix", "tcp"], default="unix")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = parse_options(sys.argv[1:])
    CLIENTS[options.server](options)
