"""Where one server lives: its folder and its port."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
LOWEST_PORT = 15000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Where one server lives."""

    folder: str
    port: int

    def fill(self, text: str) -> str:
        """Put the folder and the port where their names stand."""
        return text.replace("{folder}", self.folder).replace("{port}", str(self.port))

    def words(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The same for each word."""
        return tuple(self.fill(word) for word in words)

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The same for each value."""
        return {name: self.fill(value) for name, value in environment.items()}


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now.

    Below those that the kernel gives to outgoing connections, so that none of them takes it
    before the server does; where that leaves no room, one that the kernel gives.
    """
    draw = random.SystemRandom()
    above = _first_ephemeral()
    for _ in range(_TRIES if above > LOWEST_PORT else 0):
        port = draw.randrange(LOWEST_PORT, above)
        if _is_free(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.bind((LOOPBACK, 0))
        given: int = line.getsockname()[1]
        return given


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        try:
            line.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _first_ephemeral() -> int:
    try:
        return int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        # Without the range the kernel's own choice is as good as any.
        return 0
